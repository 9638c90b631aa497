// @ts-check
import { html, useState } from "../vendor/preact.js";
import { get, post, put, remove } from "../lib/api.js";
import { memory } from "../lib/format.js";
import { Ask, Trouble, useLoaded } from "../lib/ui.js";
import { t } from "../lib/words.js";

const TABS = /** @type {const} */ (["users", "groups", "clusters", "storages"]);

/** What administrators keep: users, groups, virtual clusters, storages. @param {{me: any, more: string[]}} props */
export function Admin({ me, more }) {
  const tab = TABS.find((each) => each === more[0]) ?? "users";
  const users = useLoaded((signal) => get("/users", { signal }), []);
  const groups = useLoaded((signal) => get("/groups", { signal }), []);
  const clusters = useLoaded((signal) => get("/virtual-clusters", { signal }), []);
  const storages = useLoaded(async (signal) => Promise.all((await get("/storages", { signal })).storages.map((/** @type {any} */ each) => get(`/storages/${encodeURIComponent(each.name)}`, { signal }))), []);
  const [error, setError] = useState(/** @type {any} */ (null));
  const [asking, setAsking] = useState(/** @type {{name: string, path: string} | null} */ (null));
  const [open, setOpen] = useState("");
  const [said, setSaid] = useState("");
  const all = [users, groups, clusters, storages];
  /** Does what a form asks for, and shows the call that did it. @param {() => Promise<any>} what @param {string} call */
  const act = async (what, call) => {
    setError(null);
    setAsking(null);
    setSaid("");
    try {
      await what();
      setSaid(`${call} — ${t("done")}`);
      setOpen("");
      all.forEach((each) => each.reload());
      return true;
    } catch (found) {
      setError(found);
      return false;
    }
  };
  if (!me.admin) return html`<p>${t("onlyAdmins")}</p>`;
  const shown = { users: users.value ?? [], groups: groups.value ?? [], clusters: Object.entries(clusters.value ?? {}), storages: storages.value ?? [] };
  const parts = { act, open, setOpen, ask: setAsking, users: shown.users, groups: shown.groups, clusters: Object.keys(clusters.value ?? {}), storages: shown.storages.map((/** @type {any} */ each) => each.name) };
  const views = { users: UsersTable, groups: Groups, clusters: Clusters, storages: Storages };
  return html`<h1>${t("administration")}</h1>
    <nav class="tabs" aria-label=${t("administration")}>${TABS.map((each) => html`<a href=${`/admin/${each}`} aria-current=${tab === each ? "page" : undefined}>${t(each)} <span class="soft">${shown[each].length || ""}</span></a>`)}</nav>
    ${(error || all.find((each) => each.error)?.error) && html`<${Trouble} error=${error ?? all.find((each) => each.error)?.error} />`}<p role="status" class="soft mono">${said}</p>
    <${views[tab]} ...${parts} rows=${shown[tab]} key=${tab} />
    ${asking && html`<${Ask} question=${t("confirmForget", asking.name)} onYes=${() => act(() => remove(asking.path), `DELETE /api/v2${asking.path}`)} onNo=${() => setAsking(null)} />`}`;
}

/** A table with a form below a row that is changed, and one at the end for a new row. @param {{kind: string, heads: string[], rows: {key: string, cells: any[], fixed?: boolean}[], form: (key: string) => any, open: string, setOpen: (key: string) => void, onRemove: (key: string) => void, label: string}} props */
const Editable = ({ kind, heads, rows, form, open, setOpen, onRemove, label }) => html`<div class=${`grid ${kind}`} role="table" aria-label=${label}>
    <div role="row" class="head">${[...heads, ""].map((each) => html`<span role="columnheader">${each}</span>`)}</div>
    ${rows.map((row) => html`<div role="row" key=${row.key}>${row.cells.map((cell) => html`<span role="cell" title=${typeof cell === "string" ? cell : undefined}>${cell}</span>`)}
      <span role="cell" class="acts"><button aria-expanded=${open === row.key} aria-label=${`${t("change")} ${row.key}`} onClick=${() => setOpen(open === row.key ? "" : row.key)}>${t("change")}</button>
        ${!row.fixed && html`<button aria-label=${`${t("remove")} ${row.key}`} onClick=${() => onRemove(row.key)}>${t("remove")}</button>`}</span></div>
      ${open === row.key && html`<div role="row" class="whole"><div role="cell">${form(row.key)}</div></div>`}`)}
  </div>
  <p><button class=${open === "+" ? "" : "main"} aria-expanded=${open === "+"} onClick=${() => setOpen(open === "+" ? "" : "+")}>${t("add")}</button></p>
  ${open === "+" && html`<div class="panel">${form("")}</div>`}`;

/** @param {{onSend: (data: FormData) => void, children?: any}} props */
const Form = ({ onSend, children }) => html`<form class="stack wide" onSubmit=${(/** @type {SubmitEvent} */ event) => (event.preventDefault(), onSend(new FormData(/** @type {HTMLFormElement} */ (event.target))))}>${children}<div><button class="main">${t("save")}</button></div></form>`;

/** @param {{legend: string, name: string, all: string[], on: string[], locked?: string[]}} props */
const Ticks = ({ legend, name, all, on, locked = [] }) => html`<fieldset><legend>${legend}</legend><div class="ticks">${all.map((each) => html`<label><input type="checkbox" name=${name} value=${each} defaultChecked=${on.includes(each)} disabled=${locked.includes(each)} /> <bdi>${each}</bdi></label>`)}${!all.length && html`<span class="soft">—</span>`}</div></fieldset>`;

/** @param {any} props */
function UsersTable({ rows, act, open, setOpen, ask, clusters }) {
  const form = (/** @type {string} */ key) => {
    const user = rows.find((/** @type {any} */ each) => each.username === key) ?? { username: "", email: "", admin: false, virtualCluster: [] };
    return html`<${Form} onSend=${(/** @type {FormData} */ data) => {
      const password = String(data.get("password") ?? ""), body = { username: key || data.get("username"), email: data.get("email") ?? "", admin: data.get("admin") === "on", virtualCluster: data.getAll("vc"), ...(password ? { password } : {}) };
      return key ? act(() => put("/users", { patch: true, data: body }), "PUT /api/v2/users") : act(() => post("/users", body), "POST /api/v2/users");
    }}>
      ${!key && html`<label>${t("user")}<input name="username" required pattern="[A-Za-z0-9_.\\-]+" autocomplete="off" /></label>`}
      <label>${key ? t("newPasswordOptional") : t("password")}<input name="password" type="password" required=${!key} minlength="6" autocomplete="new-password" /></label>
      <label>${t("email")}<input name="email" type="email" value=${user.email} /></label>
      <${Ticks} legend=${t("clusters")} name="vc" all=${clusters} on=${[...user.virtualCluster, "default"]} locked=${["default"]} />
      <label class="row"><input type="checkbox" name="admin" defaultChecked=${user.admin} /> ${t("admin")}</label></${Form}>`;
  };
  return html`<${Editable} kind="users" label=${t("users")} heads=${[t("user"), t("email"), t("admin"), t("groups"), t("clusters")]} open=${open} setOpen=${setOpen} form=${form} onRemove=${(/** @type {string} */ name) => ask({ name, path: `/users/${encodeURIComponent(name)}` })}
    rows=${rows.map((/** @type {any} */ each) => ({ key: each.username, fixed: each.admin, cells: [html`<bdi>${each.username}</bdi>`, each.email, each.admin ? t("yes") : "", each.grouplist.join(", "), each.virtualCluster.join(", ")] }))} />`;
}

/** @param {any} props */
function Groups({ rows, act, open, setOpen, ask, clusters, storages, users }) {
  const acls = (/** @type {any} */ group) => ({ virtualClusters: [], storageConfigs: [], admin: false, ...(group?.extension?.acls ?? {}) });
  const members = (/** @type {string} */ name) => users.filter((/** @type {any} */ each) => each.grouplist.includes(name)).map((/** @type {any} */ each) => each.username);
  const form = (/** @type {string} */ key) => {
    const group = rows.find((/** @type {any} */ each) => each.groupname === key), may = acls(group), now = key ? members(key) : [];
    return html`<${Form} onSend=${(/** @type {FormData} */ data) => act(async () => {
      const name = key || String(data.get("groupname")), extension = { ...(group?.extension ?? {}), acls: { ...may, virtualClusters: data.getAll("vc"), storageConfigs: data.getAll("storage") } };
      const body = { groupname: name, description: data.get("description") ?? "", externalName: group?.externalName ?? "", extension };
      await (key ? put("/groups", { patch: true, data: body }) : post("/groups", body));
      const wanted = data.getAll("member").map(String), path = (/** @type {string} */ user) => `/users/${encodeURIComponent(user)}/group`;
      for (const user of wanted) if (!now.includes(user)) await put(path(user), { groupname: name });
      for (const user of now) if (!wanted.includes(user)) await remove(path(user), { groupname: name });
    }, `${key ? "PUT" : "POST"} /api/v2/groups`)}>
      ${!key && html`<label>${t("group")}<input name="groupname" required pattern="[A-Za-z0-9_.\\-]+" autocomplete="off" /></label>`}
      <label>${t("description")}<input name="description" value=${group?.description ?? ""} /></label>
      <${Ticks} legend=${t("clusters")} name="vc" all=${clusters} on=${may.virtualClusters} /><${Ticks} legend=${t("storages")} name="storage" all=${storages} on=${may.storageConfigs} />
      <${Ticks} legend=${t("members")} name="member" all=${users.map((/** @type {any} */ each) => each.username)} on=${now} /></${Form}>`;
  };
  return html`<${Editable} kind="groups" label=${t("groups")} heads=${[t("group"), t("description"), t("clusters"), t("storages"), t("members")]} open=${open} setOpen=${setOpen} form=${form} onRemove=${(/** @type {string} */ name) => ask({ name, path: `/groups/${encodeURIComponent(name)}` })}
    rows=${rows.map((/** @type {any} */ each) => ({ key: each.groupname, fixed: ["default", "admin"].includes(each.groupname), cells: [html`<bdi>${each.groupname}</bdi>`, each.description, acls(each).virtualClusters.join(", "), acls(each).storageConfigs.join(", "), members(each.groupname).join(", ")] }))} />`;
}

/** @param {any} props */
function Clusters({ rows, act, open, setOpen, ask }) {
  const total = rows.reduce((/** @type {any} */ sum, /** @type {any} */ [, each]) => ({ cpu: sum.cpu + each.resourcesGuaranteed.cpu, memory: sum.memory + each.resourcesGuaranteed.memory, gpu: sum.gpu + each.resourcesGuaranteed.gpu }), { cpu: 0, memory: 0, gpu: 0 });
  const form = (/** @type {string} */ key) => {
    const each = Object.fromEntries(rows)[key], kept = each?.resourcesGuaranteed ?? { cpu: 0, memory: 0, gpu: 0 }, free = Object.fromEntries(rows).default?.resourcesGuaranteed ?? total;
    const most = (/** @type {"cpu" | "memory" | "gpu"} */ what) => kept[what] + (key === "default" ? 0 : free[what]);
    const amount = (/** @type {FormDataEntryValue | null} */ text) => (text === null || text === "" ? null : Number(text));
    return html`<${Form} onSend=${(/** @type {FormData} */ data) => {
      const name = key || String(data.get("name")), limits = { userLimits: { jobs: amount(data.get("jobs")), gpus: amount(data.get("gpus")) } };
      const share = key === "default" ? {} : { resourcesGuaranteed: { cpu: Number(data.get("cpu")), memory: Number(data.get("memory")), gpu: Number(data.get("gpu")) } };
      return act(() => put(`/virtual-clusters/${encodeURIComponent(name)}`, { ...share, ...limits }), `PUT /api/v2/virtual-clusters/${name}`);
    }}>
      ${!key && html`<label>${t("name")}<input name="name" required pattern="[A-Za-z0-9_]+" autocomplete="off" /></label>`}
      ${key === "default" ? html`<p class="soft">${t("defaultHasRest")}</p>` : html`
      <label>CPU (≤ ${most("cpu")})<input name="cpu" type="number" min="0" max=${most("cpu")} step="any" required value=${kept.cpu} /></label><label>${t("memory")} MB (≤ ${most("memory")})<input name="memory" type="number" min="0" max=${most("memory")} required value=${kept.memory} /></label>
      <label>GPU (≤ ${most("gpu")})<input name="gpu" type="number" min="0" max=${most("gpu")} required value=${kept.gpu} /></label>`}
      <label>${t("mostJobs")}<input name="jobs" type="number" min="0" value=${each?.userLimits?.jobs ?? ""} /></label><label>${t("mostGpus")}<input name="gpus" type="number" min="0" value=${each?.userLimits?.gpus ?? ""} /></label></${Form}>`;
  };
  const share = (/** @type {number} */ part, /** @type {number} */ whole) => html`<span class="bar" role="img" aria-label=${`${part} / ${whole}`}><svg viewBox="0 0 100 10" preserveAspectRatio="none"><rect width=${whole ? (100 * part) / whole : 0} height="10" /></svg></span>`;
  return html`<${Editable} kind="shares" label=${t("clusters")} heads=${[t("name"), "CPU", t("memory"), "GPU", t("share"), t("perUser")]} open=${open} setOpen=${setOpen} form=${form} onRemove=${(/** @type {string} */ name) => ask({ name, path: `/virtual-clusters/${encodeURIComponent(name)}` })}
    rows=${rows.map((/** @type {any} */ [name, each]) => ({ key: name, fixed: name === "default", cells: [html`<bdi>${name}</bdi>`, each.resourcesGuaranteed.cpu, memory(each.resourcesGuaranteed.memory), each.resourcesGuaranteed.gpu, share(each.resourcesGuaranteed.cpu, total.cpu), Object.entries(each.userLimits ?? {}).map(([what, most]) => `${most} ${what}`).join(", ")] }))} />`;
}

/** @param {any} props */
function Storages({ rows, act, open, setOpen, ask }) {
  const form = (/** @type {string} */ key) => {
    const each = rows.find((/** @type {any} */ one) => one.name === key);
    return html`<${Form} onSend=${(/** @type {FormData} */ data) => {
      const name = key || String(data.get("name"));
      return act(() => put(`/storages/${encodeURIComponent(name)}`, { type: data.get("type"), data: JSON.parse(String(data.get("data"))), share: data.get("share") === "on", readOnly: data.get("readOnly") === "on" }), `PUT /api/v2/storages/${name}`);
    }}>
      ${!key && html`<label>${t("name")}<input name="name" required pattern="[A-Za-z0-9_\\-]+" autocomplete="off" /></label>`}
      <label>${t("kind")}<select name="type" value=${each?.type ?? "nfs"}>${["nfs", "samba", "azureFile", "azureBlob", "dshuttle", "other"].map((one) => html`<option>${one}</option>`)}</select></label>
      <label>${t("where")} (JSON)<textarea name="data" rows="4" class="mono" spellcheck=${false} required>${JSON.stringify(each?.data ?? { address: "nas.example", path: "/data" }, null, 2)}</textarea></label>
      <label class="row"><input type="checkbox" name="share" defaultChecked=${each?.share ?? true} /> ${t("shared")}</label><label class="row"><input type="checkbox" name="readOnly" defaultChecked=${each?.readOnly ?? false} /> ${t("readOnly")}</label></${Form}>`;
  };
  const where = (/** @type {any} */ data) => Object.entries(data).filter(([key]) => !/password|key|token/i.test(key)).map(([, value]) => String(value)).join(" ");
  return html`${!rows.length && html`<p class="soft">${t("noStorages")}</p>`}<${Editable} kind="groups" label=${t("storages")} heads=${[t("name"), t("kind"), t("where"), t("shared"), t("readOnly")]} open=${open} setOpen=${setOpen} form=${form} onRemove=${(/** @type {string} */ name) => ask({ name, path: `/storages/${encodeURIComponent(name)}` })}
    rows=${rows.map((/** @type {any} */ each) => ({ key: each.name, cells: [html`<bdi>${each.name}</bdi>`, each.type, where(each.data), each.share ? t("yes") : "", each.readOnly ? t("yes") : ""] }))} />`;
}
