// @ts-check
import { html, useEffect, useState } from "../vendor/preact.js";
import { follow, get, jobPath, post, put, remove, send } from "../lib/api.js";
import { amounts, duration, exactTime, memory } from "../lib/format.js";
import { useKeys } from "../lib/keys.js";
import { go } from "../lib/router.js";
import { Ago, Ask, Copy, State, Trouble, useClock, useLoaded } from "../lib/ui.js";
import { language, stateWord, t } from "../lib/words.js";
import { Logs } from "./logs.js";
import { Tasks } from "./tasks.js";

const TABS = ["", "tasks", "logs", "timeline", "usage", "file", "plan", "events"];
const OVER = ["SUCCEEDED", "FAILED", "STOPPED"];
const MOST_DOTS = 200;

/** One job, under its address. @param {{me: any, job: string, tab: string, more: string[]}} props */
export function Job({ me, job, tab, more }) {
  const path = jobPath(job);
  const record = useLoaded((signal) => get(`${path}/record`, { signal }), [job]);
  const why = useLoaded((signal) => get(`${path}/why`, { signal }), [job]);
  const [asking, setAsking] = useState("");
  const [error, setError] = useState(/** @type {any} */ (null));
  const now = useClock();
  useEffect(() => {
    const abort = new AbortController();
    let due = /** @type {any} */ (null);
    const look = () => (due ??= setTimeout(() => ((due = null), record.reload(), why.reload()), 300));
    follow(`${path}/live`, ({ kind }) => (look(), kind === "end"), { signal: abort.signal, poll: look }).catch(() => {});
    return () => (clearTimeout(due), abort.abort());
  }, [job]);
  // Reasons of waiting jobs change with other jobs, which this job's stream does not tell.
  const waits = record.value?.state === "WAITING";
  useEffect(() => {
    if (!waits) return;
    const timer = setInterval(() => document.hidden || why.reload(), 1500);
    return () => clearInterval(timer);
  }, [waits, job]);

  const act = async (/** @type {() => Promise<any>} */ what) => {
    setError(null);
    setAsking("");
    try {
      await what();
      record.reload();
      why.reload();
    } catch (found) {
      setError(found);
    }
  };
  const here = `/jobs/${encodeURIComponent(job)}`;
  const rerun = () => act(async () => go(`/jobs/${encodeURIComponent(await again(path, record.value.user))}`));
  useKeys({
    s: () => void (record.value && !OVER.includes(record.value.state) && setAsking("stop")),
    r: () => void (record.value && rerun()),
    c: () => go(`/submit?from=${encodeURIComponent(job)}`),
    l: () => go(`${here}/logs`),
    w: () => go(here),
    Escape: () => go(tab ? here : "/jobs"),
  }, [record.value, tab, job]);

  if (record.error && !record.value) return html`<${Trouble} error=${record.error} retry=${record.reload} />`;
  if (!record.value) return html`<p class="soft">${t("loading")}</p>`;
  const run = record.value;
  const over = OVER.includes(run.state);
  const actions = {
    stop: () => act(() => put(`${path}/executionType`, { value: "STOP" })),
    remove: () => act(async () => (await remove(path), go("/jobs"))),
  };
  return html`
    <div class="row">
      <a href="/jobs" aria-label=${t("jobs")}>‹</a>
      <h1><bdi>${run.user}~${run.name}</bdi></h1>
      <${State} state=${run.state} />
      <span class="soft grow">${[run.started ? duration((run.ended ? run.ended * 1000 : now) - run.started * 1000) : "", run.attempt > 0 ? `${t("attempt")} ${run.attempt + 1}` : "", run.engine, run.virtualCluster].filter(Boolean).join(" · ")}</span>
      ${!over && html`<button class="danger" onClick=${() => setAsking("stop")}>${t("stop")}</button>`}
      <button onClick=${rerun}>${t("rerun")}</button>
      <a class="button" href=${`/submit?from=${encodeURIComponent(job)}`}>${t("clone")}</a>
      ${over && html`<button onClick=${() => setAsking("remove")}>${t("remove")}</button>`}
    </div>
    ${error && html`<${Trouble} error=${error} />`}
    <nav class="tabs" aria-label=${run.name}>${TABS.map((each) => html`<a href=${each ? `${here}/${each}` : here} aria-current=${tab === each ? "page" : undefined}>${t(each || "overview")}</a>`)}</nav>
    ${tab === "" && html`<${Overview} run=${run} why=${why.value} here=${here} path=${path} now=${now} />`}
    ${tab === "tasks" && html`<${Tasks} run=${run} path=${path} here=${here} now=${now} />`}
    ${(tab === "timeline" || tab === "usage") && html`<${Drawn} name=${tab} run=${run} path=${path} here=${here} now=${now} />`}
    ${tab === "logs" && html`<${Logs} run=${run} path=${path} here=${here} role=${more[0]} index=${Number(more[1] ?? 0)} key=${`${more[0]}:${more[1]}`} />`}
    ${tab === "file" && html`<${TextOf} load=${() => send("GET", `${path}/config?format=text`).then((each) => each.text())} />`}
    ${tab === "plan" && html`<${Plan} path=${path} />`}
    ${tab === "events" && html`<${Events} path=${path} state=${run.state} />`}
    ${asking && html`<${Ask} question=${t(asking === "stop" ? "confirmStop" : "confirmRemove", job)} onYes=${() => actions[/** @type {"stop" | "remove"} */ (asking)]()} onNo=${() => setAsking("")} />`}`;
}

/** Tabs with drawings are loaded when they are first looked at. */
const DRAWN = /** @type {Record<string, () => Promise<any>>} */ ({
  timeline: async () => (await import("./timeline.js")).Timeline,
  usage: async () => (await import("./usage.js")).Usage,
});

/** @param {{name: string, [key: string]: any}} props */
function Drawn({ name, ...props }) {
  const part = useLoaded(async () => ({ name, view: await DRAWN[name]() }), [name]);
  if (part.error) return html`<${Trouble} error=${part.error} retry=${part.reload} />`;
  return part.value?.name === name ? html`<${part.value.view} ...${props} />` : html`<p class="soft">${t("loading")}</p>`;
}

/** @param {string} path @param {string} user */
async function again(path, user) {
  const { name } = await post(`${path}/rerun`);
  return name.includes("~") ? name : `${user}~${name}`;
}

/** @param {any} run */
const tasksOf = (run) => Object.entries(run.taskRoles).flatMap(([role, { tasks }]) => tasks.map((/** @type {any} */ task) => ({ role, ...task })));

/** @param {{run: any, why: any, here: string, path: string, now: number}} props */
function Overview({ run, why, here, path, now }) {
  const failed = tasksOf(run).find((each) => each.state === "FAILED");
  return html`
    <section class="panel" aria-label=${t("why")}>
      <h2>${t("why")}</h2>
      ${why?.lines.map((/** @type {string} */ line) => html`<div class=${line.startsWith("    ") ? "mono" : line.startsWith(`${run.name} is `) ? "headline" : ""}>${line}</div>`)}
      ${why?.reason && html`<${Waiting} reason=${why.reason} now=${now} />`}
      ${failed && html`<p><a href=${`${here}/logs/${encodeURIComponent(failed.role)}/${failed.index}`}>${t("openLog")}: ${failed.role}:${failed.index}</a></p>`}
    </section>
    <section class="panel" aria-label=${t("tasks")}>${Object.entries(run.taskRoles).map(([role, { tasks }]) => html`<div class="role">
      <strong><bdi>${role}</bdi></strong> <span class="soft">${inStates(tasks)}</span>
      <div class="dots">${tasks.slice(0, MOST_DOTS).map((/** @type {any} */ task) => html`<a class=${task.state.toLowerCase()} title=${`${role}:${task.index} ${stateWord(task.state)}`} aria-label=${`${role}:${task.index} ${stateWord(task.state)}`} href=${`${here}/logs/${encodeURIComponent(role)}/${task.index}`}></a>`)}</div>
    </div>`)}</section>
    <section class="panel"><dl class="facts">
      <dt>${t("submitted")}</dt><dd>${exactTime(run.submitted * 1000, language())}</dd>
      ${run.started && html`<dt>${t("started")}</dt><dd>${exactTime(run.started * 1000, language())}</dd>`}
      ${run.ended && html`<dt>${t("endedAt")}</dt><dd>${exactTime(run.ended * 1000, language())}</dd>`}
      ${run.retries > 0 && html`<dt>${t("retries")}</dt><dd>${run.retries}</dd>`}
      <dt>${t("doIt")}</dt><dd class="commands">${(OVER.includes(run.state) ? ["show", "logs", "rerun"] : ["why", "logs -f", "stop"]).map((verb) => html`<${Copy} text=${`pailot ${verb} ${run.user}~${run.name}`} />`)}</dd>
    </dl></section>`;
}

/** How many tasks are in which state: `2 running, 1 failed`. @param {any[]} tasks */
function inStates(tasks) {
  const counts = /** @type {Map<string, number>} */ (new Map());
  for (const each of tasks) counts.set(each.state, (counts.get(each.state) ?? 0) + 1);
  return [...counts].map(([state, many]) => `${many} ${stateWord(state)}`).join(", ");
}

/** @param {{reason: any, now: number}} props */
export const Waiting = ({ reason, now }) => html`<div class="waits">
  ${reason.kind === "never" && html`<p class="error">${t("never")}</p>`}
  <dl class="facts">
  ${Object.keys(reason.missing).length > 0 && html`<dt>${t("missing")}</dt><dd>${lacking(reason.missing)}</dd>`}
  ${reason.position > 0 && html`<dt>${t("place")}</dt><dd>${t("position", reason.position, reason.length)}</dd>`}
  ${reason.holders.length > 0 && html`<dt>${t("holders")}</dt><dd><ul>${reason.holders.map((/** @type {any} */ each) => html`<li><a href=${`/jobs/${encodeURIComponent(each.job)}`}><bdi>${each.job}</bdi></a> <span class="soft">${amounts(each)}${each.since ? ` · ${t("since", duration(now - each.since))}` : ""}</span></li>`)}</ul></dd>`}
  </dl>
</div>`;

/** @param {Record<string, number>} missing */
const lacking = (missing) => Object.entries(missing).map(([what, much]) => (what === "cpus" ? `${+much.toFixed(2)} CPU` : what === "memoryMB" ? memory(much) : what === "gpus" ? `${much} GPU` : `${much} ${what}`)).join(" · ");

/** @param {{load: () => Promise<string>}} props */
function TextOf({ load }) {
  const text = useLoaded(load, []);
  if (text.error) return html`<${Trouble} error=${text.error} />`;
  return html`<pre class="text" tabindex="0">${text.value ?? t("loading")}</pre>`;
}

/** @param {{path: string}} props */
function Plan({ path }) {
  const plan = useLoaded((signal) => get(`${path}/plan`, { signal }), [path]);
  if (plan.error) return html`<${Trouble} error=${plan.error} />`;
  return plan.value ? html`<${PlanRoles} plan=${plan.value} />` : html`<p class="soft">${t("loading")}</p>`;
}

/** What each task would run: its script, its environment, what it asks for. @param {{plan: any}} props */
export const PlanRoles = ({ plan }) => html`<div>${Object.entries(plan.taskRoles).map(([role, each]) => html`<${PlanRole} key=${role} role=${role} plan=${each} />`)}</div>`;

/** @param {{role: string, plan: any}} props */
function PlanRole({ role, plan }) {
  const [index, setIndex] = useState(0);
  const own = plan.taskEnvironment?.[index] ?? {}, all = { ...plan.environment, ...own };
  const asked = plan.resources ?? {}, ports = Object.keys(asked.ports ?? {});
  return html`<section class="panel">
  <div class="row"><strong><bdi>${role}</bdi></strong> <span class="soft grow">${[`× ${plan.instances}`, plan.image, amounts({ cpus: asked.cpu ?? 0, memoryMB: asked.memoryMB ?? 0, gpus: asked.gpu ?? 0 }), ports.length ? `${t("ports")} ${ports.join(", ")}` : "", plan.retries ? `${t("retries")} ${plan.retries}` : ""].filter(Boolean).join(" · ")}</span>
    ${plan.instances > 1 && html`<label>${t("task")} <input class="small" type="number" min="0" max=${plan.instances - 1} value=${index} onInput=${(/** @type {any} */ e) => setIndex(Math.min(plan.instances - 1, Math.max(0, Number(e.target.value) || 0)))} /></label>`}</div>
  ${["start", "main", "exit"].filter((part) => plan.script?.[part]).map((part) => html`<h2>${part}</h2><pre class="text" tabindex="0">${plan.script[part]}</pre>`)}
  <details><summary>${t("environment")} <span class="soft">${Object.keys(all).length}</span></summary><pre class="text" tabindex="0">${Object.entries(all).map(([name, value]) => html`<span class=${name in own ? "own" : ""}>${name}=${value}${"\n"}</span>`)}</pre></details>
</section>`;
}

/** @param {{path: string, state: string}} props */
function Events({ path, state }) {
  const journal = useLoaded((signal) => get(`${path}/journal`, { signal }), [path, state]);
  if (journal.error) return html`<${Trouble} error=${journal.error} />`;
  const said = (/** @type {any} */ { at, event, role, index, lastLines, ...rest }) =>
    Object.entries(rest).filter(([, value]) => value !== null && typeof value !== "object").map(([key, value]) => `${key}=${value}`).join("  ");
  return html`<div class="grid holders" role="table" aria-label=${t("events")}>${(journal.value ?? []).map((/** @type {any} */ each) => html`<div role="row">
    <span role="cell" class="soft">${exactTime(each.at * 1000, language())}</span><span role="cell">${each.event}</span>
    <span role="cell">${each.role !== undefined ? `${each.role}:${each.index}` : ""}</span><span role="cell"><${Ago} at=${each.at * 1000} /></span>
    <span role="cell" class="soft" title=${said(each)}>${said(each)}</span></div>`)}</div>`;
}
