// @ts-check
import { html, useEffect, useState } from "../vendor/preact.js";
import { get } from "../lib/api.js";
import { count, duration, memory } from "../lib/format.js";
import { go, withQuery } from "../lib/router.js";
import { State, Trouble, useLoaded } from "../lib/ui.js";
import { stateWord, t } from "../lib/words.js";

const PAGE = 100;

/** The tasks of a job, a hundred at a time; what was tried before folds out. @param {{run: any, path: string, here: string, now: number}} props */
export function Tasks({ run, path, here, now }) {
  const query = new URLSearchParams(location.search);
  const state = query.get("state") ?? "", role = query.get("role") ?? "", offset = Math.max(0, Number(query.get("offset")) || 0);
  const filter = new URLSearchParams({ limit: String(PAGE), offset: String(offset) });
  if (state) filter.set("state", state);
  if (role) filter.set("role", role);
  const tasks = useLoaded((signal) => get(`${path}/tasks?${filter}`, { signal }), [path, String(filter), run]);
  const peaks = useLoaded((signal) => get(`${path}/usage`, { signal }), [path, run.state]);
  const [open, setOpen] = useState("");
  const tries = useLoaded(async (signal) => (open ? get(`${path}/timeline?role=${encodeURIComponent(open.slice(0, open.lastIndexOf(":")))}`, { signal }) : null), [path, open, run]);
  useEffect(() => setOpen(""), [path]);
  if (tasks.error && !tasks.value) return html`<${Trouble} error=${tasks.error} retry=${tasks.reload} />`;
  if (!tasks.value) return html`<p class="soft">${t("loading")}</p>`;
  const { totalCount, states, data } = tasks.value;
  const used = new Map((peaks.value?.tasks ?? []).map((/** @type {any} */ each) => [`${each.role}:${each.index}`, each]));
  const roles = Object.keys(run.taskRoles);
  const heads = [t("task"), t("state"), t("try"), t("exit"), t("ran"), t("peakMemory"), t("host"), t("ports"), t("reason"), ""];
  const to = (/** @type {any} */ task, more = "") => `${here}/logs/${encodeURIComponent(task.role)}/${task.index}${more}`;
  return html`<div class="row">
      <div class="chips grow" role="group" aria-label=${t("state")}>
        <button aria-pressed=${!state} onClick=${() => go(withQuery({ state: null, offset: null }))}>${t("anyState")}</button>
        ${Object.entries(states).map(([each, many]) => html`<button aria-pressed=${state === each} onClick=${() => go(withQuery({ state: state === each ? null : each, offset: null }))}>${stateWord(each)} <b>${count(/** @type {number} */ (many))}</b></button>`)}
      </div>
      ${roles.length > 1 && html`<label>${t("role")} <select value=${role} onChange=${(/** @type {any} */ e) => go(withQuery({ role: e.target.value, offset: null }))}><option value="">${t("all")}</option>${roles.map((each) => html`<option>${each}</option>`)}</select></label>`}
    </div>
    <div class="grid tasks" role="table" aria-label=${t("tasks")}>
    <div role="row" class="head">${heads.map((each) => html`<span role="columnheader">${each}</span>`)}</div>
    ${data.map((/** @type {any} */ task) => {
      const name = `${task.role}:${task.index}`, use = used.get(name), unfolded = open === name;
      const peak = use?.peak?.peakMemoryMB;
      return html`<div role="row" key=${name}>
      <span role="cell"><bdi>${name}</bdi></span><span role="cell"><${State} state=${task.state} /></span>
      <span role="cell">${task.attempt > 0 ? html`<button class="quiet" aria-expanded=${unfolded} onClick=${() => setOpen(unfolded ? "" : name)}>${unfolded ? "▾" : "▸"} ${task.attempt + 1}</button>` : task.attempt + 1}</span>
      <span role="cell">${task.exitCode ?? ""}</span>
      <span role="cell">${task.started ? duration((task.ended ?? now) - task.started) : ""}</span>
      <span role="cell" title=${use?.asked?.memoryMB ? `${t("asked")} ${memory(use.asked.memoryMB)}` : ""}>${peak ? memory(Math.round(peak)) : ""}</span>
      <span role="cell"><bdi>${task.host ?? ""}</bdi></span>
      <span role="cell" class="mono soft" title=${portsText(task.ports)}>${portsText(task.ports)}</span>
      <span role="cell" class="soft" title=${task.reason ?? ""}>${task.reason ?? ""}</span>
      <span role="cell"><a href=${to(task)} aria-label=${`${t("logs")} ${name}`}>${t("logs")}</a></span>
    </div>
    ${unfolded && (tries.value?.tasks ?? []).filter((/** @type {any} */ each) => each.index === task.index).map((/** @type {any} */ each) => html`<div role="row" class="try" key=${`${name}/${each.jobAttempt}.${each.attempt}`}>
      <span role="cell" class="soft">${each.jobAttempt ? `${t("attempt")} ${each.jobAttempt + 1} · ` : ""}${t("tryNumber", each.attempt + 1)}</span><span role="cell"><${State} state=${each.state} /></span><span role="cell"></span>
      <span role="cell">${each.exitCode ?? ""}</span><span role="cell">${each.started ? duration((each.ended ?? now) - each.started) : ""}</span><span role="cell"></span><span role="cell"></span><span role="cell"></span>
      <span role="cell" class="soft" title=${each.reason ?? ""}>${each.reason ?? ""}</span><span role="cell"><a href=${to(task, `?attempt=${each.jobAttempt}&try=${each.attempt}`)} aria-label=${`${t("logs")} ${name} ${t("tryNumber", each.attempt + 1)}`}>${t("logs")}</a></span></div>`)}`;
    })}</div>
    ${!data.length && html`<p class="soft">${t("noTasks")}</p>`}
    ${totalCount > PAGE && html`<div class="row end foot"><span class="soft">${t("of", count(offset + 1), count(offset + data.length), count(totalCount))}</span>
      <button disabled=${offset === 0} onClick=${() => go(withQuery({ offset: Math.max(0, offset - PAGE) || null }))}>${t("before")}</button>
      <button disabled=${offset + PAGE >= totalCount} onClick=${() => go(withQuery({ offset: offset + PAGE }))}>${t("next")}</button></div>`}`;
}

/** @param {Record<string, number[]>} ports */
const portsText = (ports) => Object.entries(ports ?? {}).map(([label, numbers]) => `${label} ${numbers.join(",")}`).join("  ");
