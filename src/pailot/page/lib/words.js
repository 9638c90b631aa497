// @ts-check
// All words of the page, in every language that it speaks.

/** @type {Record<string, Record<string, string>>} */
export const WORDS = {
  en: {
    jobs: "Jobs", submit: "Submit", cluster: "Cluster", account: "Account", users: "Users", alerts: "Alerts", login: "Log in",
    logout: "Log out", user: "User", password: "Password", sessionOver: "Your session is over. Log in to go on; nothing is lost.",
    signInWith: "Sign in with {0}", goOn: "Go on", commandLine: "The command line on this machine asks to act as {0}.",
    copyCode: "You are signed in as {0}. Copy this code into the command line, within a minute:",
    commandLineWarning: "Go on only if you began this yourself, with pailot login.", signInRefused: "The identity provider did not confirm the sign-in. Try again.",
    signInNotAllowed: "You may not use this server. Ask its administrator.", signInNameInUse: "Another account has your name. Ask the administrator of this server.",
    signInUnavailable: "The identity provider cannot be reached. Try again later.", signInNeedsTls: "Signing in needs an address with https.",
    mine: "Mine", all: "All", name: "Name", state: "State", tasks: "Tasks", asked: "Asked for", waited: "Waited", ran: "Ran",
    because: "Ended because / waits for", submitted: "Submitted", anyState: "any state", contains: "name, user or cluster contains",
    noJobs: "No job matches.", clear: "Clear the filters", newJobs: "{0} new jobs: show", of: "{0}–{1} of {2}",
    earlier: "Earlier", later: "Later", stop: "Stop", kill: "Kill now", rerun: "Run again", clone: "Clone", remove: "Delete",
    overview: "Overview", logs: "Logs", file: "File", plan: "Plan", events: "Events", why: "Why", role: "Role", task: "Task",
    attempt: "Attempt", exit: "Exit", reason: "Reason", host: "Host", ports: "Ports", started: "Started", retries: "Retries",
    confirmStop: "Stop {0}?", confirmRemove: "Delete {0} with its logs? This cannot be undone.", yes: "Yes", no: "No", cancel: "Cancel",
    holders: "Held by", missing: "Missing", position: "Place in line: {0} of {1}", never: "It can never start.", since: "since {0}",
    follow: "Follow", find: "Find", wrap: "Wrap", download: "Download", newLines: "{0} new lines", nothingYet: "Nothing printed yet.",
    endedSilent: "Ended without output.", loadEarlier: "Load earlier lines", rotated: "The first {0} are no longer kept.",
    live: "live", ended: "ended", problems: "Problems", noProblems: "No problems.", fix: "Fix", wouldStart: "It would start now.",
    jobName: "Name", secretsKept: "Masked secrets are taken from {0}.", submitNow: "Submit (Ctrl+Enter)", checking: "Checking …",
    nameTaken: "This name is in use.", total: "Total", used: "Used", free: "Free", running: "Running", waiting: "Waiting",
    kept: "Kept", line: "In line", nothingRuns: "Nothing runs. Everything is free.", nothingWaits: "Nothing waits.",
    sessions: "Sessions and tokens", kind: "Kind", created: "Created", expires: "Expires", revoke: "Revoke", thisOne: "this one",
    everywhere: "Log out everywhere", newToken: "New token for a program", note: "Note", tokenOnce: "Copy it now: it is shown once.",
    changePassword: "Change the password", oldPassword: "Present password", newPassword: "New password", save: "Save", done: "Done.",
    theme: "Appearance", system: "as the system", light: "light", dark: "dark", language: "Language", admin: "Administrator",
    email: "Mail", clusters: "Virtual clusters", addUser: "Add a user", add: "Add", noAlerts: "All is well.", lineLost: "The line to the server is lost; trying again …",
    tryAgain: "Try again", loading: "Loading …", notFound: "There is no such page.", firstRun: "No jobs yet. Three ways to begin:",
    tryExample: "Try the example in the browser", fromShell: "From a shell:", makeUsers: "Make users for your team", tags: "Tags",
    lastLines: "Last lines", openLog: "Open the log", command: "Command", copy: "Copy", copied: "Copied", taskOf: "{0} of {1}",
    unfinished: "Not over", whatToDo: "What you can do", match: "{0} of {1}", noMatch: "no match", skip: "Skip to the content",
    keys: "Keys", goto: "Go to job", gotoHint: "Go to job  Ctrl+K", close: "Close", doIt: "In a shell", keyJobs: "jobs", keySubmit: "a new job", keyCluster: "the cluster", keyAccount: "your account",
    keyMove: "next, previous row", keyOpen: "open", keyChoose: "choose the row", keyFind: "find", keyBack: "back", keyNext: "next, previous match", keyFollow: "follow the log",
    keyWhy: "why", environment: "Environment", streamLabel: "Stream",
    timeline: "Timeline", usage: "Usage", try: "Try", tryNumber: "try {0}", folded: "folded",
    timelineHint: "Drag to zoom, click a bar for its log.", timelineLabel: "{0} tries in {1}", wholeTime: "Whole time",
    peakMemory: "Peak memory", noTasks: "No task matches.", before: "Back", next: "Next", together: "all {0} together",
    noUsage: "No samples yet. They are taken every 5 seconds.", memory: "Memory", gpuMemory: "GPU memory", nowWord: "now", peak: "Peak",
    mean: "mean", processes: "Processes", askedNever: "asked {0}, never above {1}", neverAbove: "never above {0}",
    times: "Times", linkTo: "link to byte {0}", showAll: "show all ({0})", showTry: "Show try {0}", notAtEnd: "not at the end",
    toEnd: "To the end", linesPicked: "{0} lines", linePicked: "1 line", copyLink: "Copy link", later_: "{0} later",
    previousHit: "previous match", nextHit: "next match", exactCase: "match case", regex: "regular expression", allTasks: "all tasks",
    keyTimes: "times in the log",
    thisTry: "this try",
    administration: "Administration", groups: "Groups", group: "Group", storages: "Storages", members: "Members",
    description: "Description", change: "Change", confirmForget: "Remove {0}?", onlyAdmins: "Only administrators see this.",
    newPasswordOptional: "New password (empty: as it is)", share: "Share", perUser: "Each user at most",
    mostJobs: "Each user at most: running jobs", mostGpus: "Each user at most: GPUs",
    defaultHasRest: "This cluster has what the others leave.", where: "Where", shared: "Shared", readOnly: "Read only",
    noStorages: "No storage is known.",
    waitingJobs: "{0} jobs wait ({1} GPU)", freeNow: "Free now", borrowed: "beyond what is kept for it; may be taken back",
    orderBy: "order by", nothingRunsFree: "Nothing runs. All {0} CPUs are free.", holds: "Holds", sinceWord: "Since",
    kind_page: "browser", kind_login: "log-in", kind_application: "program",
    lastDay: "Last 24 hours",
    chosen: "{0} chosen:", confirmRerun: "Run {0} again?", ago: "{0} ago",
    library: "Library", searchLibrary: "name, description, owner or address", newEntry: "New entry", size: "Size", owner: "Owner", uses: "Uses", versions: "Versions",
    noEntry: "Nothing in the library matches.", emptyLibrary: "The library is empty. Prerequisites, data sets and job templates that all jobs may use are kept here.", more: "More", back: "Back",
    type_data: "data set", type_script: "script", type_output: "output", type_dockerimage: "image", type_job: "job template", source: "Kept by", sourceServer: "this server",
    sourceFolder: "the administrator, in a folder", requires: "Requires", useInJob: "Use in a new job", whereItLies: "Where the content lies", liesOn: "On {0}:",
    jobsUseIt: "{0} jobs use it now", lastUsed: "last used", notFetched: "Not on {0} yet: the first job that uses it fetches it.", notShared: "Not shared: each user has a copy.",
    entryHint: "Every user reads the library: no password may stand in a file. A new version leaves the old ones as they are.", template: "Template",
    place: "Queue",
    endedAt: "Ended",
  },
  zh: {
    jobs: "任务", submit: "提交", cluster: "集群", account: "账户", users: "用户", alerts: "告警", login: "登录",
    logout: "退出", user: "用户名", password: "密码", sessionOver: "会话已结束。请登录后继续，内容不会丢失。",
    signInWith: "通过 {0} 登录", goOn: "继续", commandLine: "本机的命令行请求以 {0} 的身份操作。",
    copyCode: "您已以 {0} 的身份登录。请在一分钟内将此代码复制到命令行：",
    commandLineWarning: "仅当您自己运行了 pailot login 时才继续。", signInRefused: "身份提供方未确认此次登录。请重试。",
    signInNotAllowed: "您无权使用此服务器。请联系管理员。", signInNameInUse: "已有其他账户使用您的名称。请联系管理员。",
    signInUnavailable: "无法连接身份提供方。请稍后重试。", signInNeedsTls: "登录需要 https 地址。",
    mine: "我的", all: "全部", name: "名称", state: "状态", tasks: "子任务", asked: "申请资源", waited: "等待", ran: "运行",
    because: "结束原因 / 等待原因", submitted: "提交时间", anyState: "所有状态", contains: "名称、用户或集群包含",
    noJobs: "没有符合条件的任务。", clear: "清除筛选", newJobs: "{0} 个新任务：显示", of: "第 {0}–{1} 个，共 {2} 个",
    earlier: "更早", later: "更新", stop: "停止", kill: "立即终止", rerun: "重新运行", clone: "克隆", remove: "删除",
    overview: "概览", logs: "日志", file: "文件", plan: "计划", events: "事件", why: "原因", role: "角色", task: "子任务",
    attempt: "尝试", exit: "退出码", reason: "原因", host: "主机", ports: "端口", started: "开始时间", retries: "重试",
    confirmStop: "停止 {0}？", confirmRemove: "删除 {0} 及其日志？此操作无法撤销。", yes: "是", no: "否", cancel: "取消",
    holders: "占用者", missing: "缺少", position: "排队位置：第 {0} 个，共 {1} 个", never: "该任务永远无法启动。", since: "自 {0}",
    follow: "跟随", find: "查找", wrap: "换行", download: "下载", newLines: "{0} 行新日志", nothingYet: "尚无输出。",
    endedSilent: "已结束，没有输出。", loadEarlier: "加载更早的日志", rotated: "最前面的 {0} 已不再保留。",
    live: "实时", ended: "已结束", problems: "问题", noProblems: "没有问题。", fix: "修复", wouldStart: "现在可以启动。",
    jobName: "名称", secretsKept: "被遮盖的密钥取自 {0}。", submitNow: "提交 (Ctrl+Enter)", checking: "检查中 …",
    nameTaken: "该名称已被使用。", total: "总量", used: "已用", free: "空闲", running: "运行中", waiting: "等待中",
    kept: "保留", line: "排队", nothingRuns: "没有任务在运行，全部空闲。", nothingWaits: "没有任务在等待。",
    sessions: "会话与令牌", kind: "类型", created: "创建时间", expires: "到期时间", revoke: "撤销", thisOne: "当前",
    everywhere: "在所有设备上退出", newToken: "为程序创建令牌", note: "备注", tokenOnce: "请立即复制：只显示一次。",
    changePassword: "修改密码", oldPassword: "当前密码", newPassword: "新密码", save: "保存", done: "完成。",
    theme: "外观", system: "跟随系统", light: "浅色", dark: "深色", language: "语言", admin: "管理员",
    email: "邮箱", clusters: "虚拟集群", addUser: "添加用户", add: "添加", noAlerts: "一切正常。", lineLost: "与服务器的连接中断，正在重试 …",
    tryAgain: "重试", loading: "加载中 …", notFound: "没有这个页面。", firstRun: "还没有任务。可以这样开始：",
    tryExample: "在浏览器中试用示例", fromShell: "在命令行中：", makeUsers: "为团队创建用户", tags: "标签",
    lastLines: "最后几行", openLog: "打开日志", command: "命令", copy: "复制", copied: "已复制", taskOf: "{0} / {1}",
    unfinished: "未结束", whatToDo: "可以做什么", match: "第 {0} 个，共 {1} 个", noMatch: "没有匹配", skip: "跳到内容",
    keys: "快捷键", goto: "跳转到任务", gotoHint: "跳转到任务  Ctrl+K", close: "关闭", doIt: "在命令行中", keyJobs: "任务列表", keySubmit: "新任务", keyCluster: "集群", keyAccount: "账户",
    keyMove: "下一行、上一行", keyOpen: "打开", keyChoose: "选择该行", keyFind: "查找", keyBack: "返回", keyNext: "下一个、上一个匹配", keyFollow: "跟随日志",
    keyWhy: "原因", environment: "环境变量", streamLabel: "输出流",
    timeline: "时间线", usage: "资源用量", try: "次数", tryNumber: "第 {0} 次", folded: "已折叠", timelineHint: "拖动可放大，点击色条查看日志。",
    timelineLabel: "{1} 内共 {0} 次运行", wholeTime: "全部时间", peakMemory: "内存峰值", noTasks: "没有符合条件的子任务。", before: "上一页", next: "下一页",
    together: "全部 {0} 个合计", noUsage: "尚无采样数据，每 5 秒采样一次。", memory: "内存", gpuMemory: "显存", nowWord: "当前", peak: "峰值", mean: "平均",
    processes: "进程数", askedNever: "申请 {0}，从未超过 {1}", neverAbove: "从未超过 {0}",
    times: "时间", linkTo: "链接到第 {0} 字节", showAll: "显示全部（{0}）", showTry: "显示第 {0} 次运行", notAtEnd: "不在末尾", toEnd: "跳到末尾",
    linesPicked: "已选 {0} 行", linePicked: "已选 1 行", copyLink: "复制链接", later_: "{0} 后", previousHit: "上一个匹配", nextHit: "下一个匹配",
    exactCase: "区分大小写", regex: "正则表达式", allTasks: "全部子任务", keyTimes: "日志时间",
    thisTry: "本次运行",
    administration: "管理", groups: "用户组", group: "用户组", storages: "存储", members: "成员", description: "说明", change: "修改",
    confirmForget: "移除 {0}？", onlyAdmins: "仅管理员可见。", newPasswordOptional: "新密码（留空则不变）", share: "份额", perUser: "每个用户上限",
    mostJobs: "每个用户上限：运行任务数", mostGpus: "每个用户上限：GPU 数", defaultHasRest: "该集群拥有其余全部资源。", where: "位置", shared: "共享", readOnly: "只读",
    noStorages: "尚无存储。",
    waitingJobs: "{0} 个任务等待中（{1} GPU）", freeNow: "当前空闲", borrowed: "超出保留份额，可能被收回", orderBy: "排序",
    nothingRunsFree: "没有任务在运行，{0} 个 CPU 全部空闲。", holds: "占用资源", sinceWord: "已占用", kind_page: "浏览器", kind_login: "登录",
    kind_application: "程序",
    lastDay: "最近 24 小时",
    chosen: "已选 {0} 个：", confirmRerun: "重新运行 {0}？", ago: "{0} 前",
    library: "资源库", searchLibrary: "名称、说明、所有者或地址", newEntry: "新建条目", size: "大小", owner: "所有者", uses: "使用次数", versions: "版本",
    noEntry: "资源库中没有符合条件的条目。", emptyLibrary: "资源库为空。所有任务可共用的先决条件、数据集和任务模板都保存在这里。", more: "更多", back: "返回",
    type_data: "数据集", type_script: "脚本", type_output: "输出", type_dockerimage: "镜像", type_job: "任务模板", source: "保存位置", sourceServer: "本服务器",
    sourceFolder: "管理员的文件夹", requires: "依赖", useInJob: "用于新任务", whereItLies: "内容所在位置", liesOn: "位于 {0}：",
    jobsUseIt: "{0} 个任务正在使用", lastUsed: "上次使用", notFetched: "{0} 上还没有：首个使用它的任务会下载。", notShared: "不共享：每个用户各有一份。",
    entryHint: "所有用户都能读取资源库：文件中不得包含密码。新版本不会改变旧版本。", template: "模板",
    place: "队列",
    endedAt: "结束时间",
  },
};

/** @type {Record<string, Record<string, string>>} */
const STATES = {
  en: { WAITING: "waiting", RUNNING: "running", STOPPING: "stopping", STOPPED: "stopped", SUCCEEDED: "succeeded", FAILED: "failed", UNKNOWN: "unknown" },
  zh: { WAITING: "等待", RUNNING: "运行", STOPPING: "停止中", STOPPED: "已停止", SUCCEEDED: "成功", FAILED: "失败", UNKNOWN: "未知" },
};

const KEPT = "pailot-language";

/** @param {string | null} wish @param {readonly string[]} browser */
export const chosen = (wish, browser) => (wish && wish in WORDS ? wish : browser.some((each) => each.toLowerCase().startsWith("zh")) && !browser[0]?.startsWith("en") ? "zh" : "en");

let now = "en";

export function startLanguage() {
  now = chosen(localStorage.getItem(KEPT), navigator.languages ?? []);
  document.documentElement.lang = now;
}

/** @param {string} name */
export function setLanguage(name) {
  localStorage.setItem(KEPT, name);
  startLanguage();
}

export const language = () => now;

/** @param {string} key @param {...(string | number)} values */
export function t(key, ...values) {
  const text = WORDS[now][key] ?? WORDS.en[key] ?? key;
  return text.replace(/\{(\d)\}/g, (_, at) => String(values[Number(at)] ?? ""));
}

/** @param {string} state */
export const stateWord = (state) => STATES[now][state] ?? state.toLowerCase();
