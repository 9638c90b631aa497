// @ts-check
import Plot from "../vendor/plot.js";
import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { get } from "../lib/api.js";
import { curve, sum } from "../lib/curves.js";
import { memory } from "../lib/format.js";
import { go, withQuery } from "../lib/router.js";
import { Trouble, useLoaded } from "../lib/ui.js";
import { language, t } from "../lib/words.js";

const POINTS = 400, AGAIN_MS = 5000, MOST_TASKS = 16, HEIGHT_PX = 190;

/** What tasks used over time, beside what they asked for. @param {{run: any, path: string, here: string}} props */
export function Usage({ run, path, here }) {
  const query = new URLSearchParams(location.search);
  const now = useLoaded((signal) => get(`${path}/usage`, { signal }), [path]);
  const roles = Object.keys(run.taskRoles);
  const role = run.taskRoles[query.get("role") ?? ""] ? /** @type {string} */ (query.get("role")) : (busiest(now.value?.tasks) ?? roles[0]);
  const tasks = run.taskRoles[role].tasks;
  const index = query.get("index") ?? (tasks.length === 1 || tasks.length > MOST_TASKS ? "0" : "sum");
  const wanted = index === "sum" ? tasks.slice(0, MOST_TASKS).map((/** @type {any} */ each) => each.index) : [Number(index)];
  const curves = useLoaded((signal) => Promise.all(wanted.map((/** @type {number} */ each) => get(`${path}/usage/${encodeURIComponent(role)}/${each}?points=${POINTS}`, { signal }))), [path, role, index, now.value !== undefined]);
  const over = ["SUCCEEDED", "FAILED", "STOPPED"].includes(run.state);
  useEffect(() => {
    if (over) return;
    const timer = setInterval(() => document.hidden || (curves.reload(), now.reload()), AGAIN_MS);
    return () => clearInterval(timer);
  }, [over, path, role, index]);
  if (now.error || curves.error) return html`<${Trouble} error=${now.error ?? curves.error} retry=${() => (now.reload(), curves.reload())} />`;
  const asked = (/** @type {string} */ what) => (curves.value ?? []).reduce((/** @type {number} */ all, /** @type {any} */ each) => all + (each.asked[what] ?? 0), 0);
  const of = (/** @type {any} */ key) => sum((curves.value ?? []).map((/** @type {any} */ each) => curve(each, key)));
  const gpus = (curves.value ?? []).some((/** @type {any} */ each) => each.attempts.some((/** @type {any} */ some) => some.series.gpuPercent));
  const some = (curves.value ?? []).some((/** @type {any} */ each) => each.attempts.length);
  return html`<div class="row">
      <label>${t("role")} <select value=${role} onChange=${(/** @type {any} */ e) => go(withQuery({ role: e.target.value, index: null }))}>${roles.map((each) => html`<option>${each}</option>`)}</select></label>
      <label>${t("task")} <select value=${index} onChange=${(/** @type {any} */ e) => go(withQuery({ role, index: e.target.value }))}>
        ${tasks.length > 1 && html`<option value="sum">${t("together", Math.min(tasks.length, MOST_TASKS))}</option>`}
        ${tasks.map((/** @type {any} */ each) => html`<option value=${String(each.index)}>${each.index}</option>`)}</select></label>
    </div>
    ${curves.value && !some && html`<p class="soft">${t("noUsage")}</p>`}
    ${some && html`<div class="plots">
      <${Chart} name="CPU" data=${of("cpus")} asked=${asked("cpus")} show=${(/** @type {number} */ each) => `${+each.toFixed(2)}`} colour="--run" />
      <${Chart} name=${t("memory")} data=${of(index === "sum" ? "memoryMB" : "maxMemoryMB")} asked=${asked("memoryMB")} show=${(/** @type {number} */ each) => memory(+each.toFixed(each < 100 ? 1 : 0))} colour="--accent" kill=${true} />
      ${gpus && html`<${Chart} name="GPU %" data=${of("gpuPercent")} asked=${100 * wanted.length} show=${(/** @type {number} */ each) => `${Math.round(each)} %`} colour="--good" />
      <${Chart} name=${t("gpuMemory")} data=${of("gpuMemoryMB")} asked=${0} show=${(/** @type {number} */ each) => memory(Math.round(each))} colour="--wait" />`}
    </div>`}
    <div class="grid used" role="table" aria-label=${t("usage")}>
      <div role="row" class="head">${[t("task"), `CPU ${t("nowWord")}`, t("peak"), t("asked"), `${t("memory")} ${t("nowWord")}`, t("peak"), t("asked"), t("processes")].map((each) => html`<span role="columnheader">${each}</span>`)}</div>
      ${(now.value?.tasks ?? []).slice(0, 500).map((/** @type {any} */ each) => html`<div role="row" key=${`${each.role}:${each.index}`}>
        <span role="cell"><a href=${withQuery({ role: each.role, index: each.index })}><bdi>${each.role}:${each.index}</bdi></a></span>
        <span role="cell">${each.now ? each.now.cpus.toFixed(2) : "—"}</span><span role="cell">${each.peak?.peakCpus ?? "—"}</span><span role="cell" class="soft">${each.asked.cpus ?? ""}</span>
        <span role="cell">${each.now ? memory(Math.round(each.now.memoryMB)) : "—"}</span><span role="cell">${each.peak?.peakMemoryMB ? memory(Math.round(each.peak.peakMemoryMB)) : "—"}</span><span role="cell" class="soft">${each.asked.memoryMB ? memory(each.asked.memoryMB) : ""}</span>
        <span role="cell">${each.now?.processes ?? "—"}</span></div>`)}
    </div>`;
}

/** @param {any[] | undefined} tasks */
const busiest = (tasks) => [...(tasks ?? [])].sort((one, other) => (other.peak?.cpuSeconds ?? 0) - (one.peak?.cpuSeconds ?? 0))[0]?.role;

/** @param {{name: string, data: [number[], (number | null)[]], asked: number, show: (amount: number) => string, colour: string, kill?: boolean}} props */
function Chart({ name, data, asked, show, colour, kill }) {
  const host = useRef(/** @type {HTMLElement | null} */ (null));
  const plot = useRef(/** @type {any} */ (null));
  const told = /** @type {number[]} */ (data[1].filter((each) => each !== null));
  const most = told.reduce((max, each) => Math.max(max, each), 0), mean = told.length ? told.reduce((all, each) => all + each, 0) / told.length : 0;
  const near = asked > 0 && most > asked / 4;
  useEffect(() => {
    const there = /** @type {HTMLElement} */ (host.current);
    const look = getComputedStyle(there), ink = (/** @type {string} */ key) => look.getPropertyValue(key).trim();
    const axis = { stroke: ink("--soft"), grid: { stroke: ink("--faint"), width: 1 }, ticks: { show: false }, font: `11px ${look.fontFamily}` };
    const clock = new Intl.DateTimeFormat(language(), { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });
    const limit = kill ? ink("--bad") : ink("--soft");
    const made = new Plot({
      width: there.clientWidth, height: HEIGHT_PX, cursor: { sync: { key: "usage" }, y: false }, legend: { show: false },
      scales: { y: { range: (/** @type {any} */ _, /** @type {number} */ __, /** @type {number} */ max) => [0, Math.max(near ? asked * 1.05 : 0, (max || 1) * 1.1)] } },
      axes: [{ ...axis, space: 70, size: 30, values: (/** @type {any} */ _, /** @type {number[]} */ marks) => marks.map((each) => clock.format(each * 1000)) }, { ...axis, size: 66, values: (/** @type {any} */ _, /** @type {number[]} */ marks) => marks.map(show) }],
      series: [{}, { stroke: ink(colour), fill: `${ink(colour)}22`, width: 1.5, points: { show: false } }, { stroke: limit, width: 1, dash: [5, 4], points: { show: false } }],
    }, /** @type {any} */ ([[], [], []]), there);
    plot.current = made;
    const watch = new ResizeObserver(() => made.setSize({ width: there.clientWidth, height: HEIGHT_PX }));
    watch.observe(there);
    return () => (watch.disconnect(), made.destroy());
  }, [near, asked]);
  useEffect(() => plot.current?.setData([data[0], data[1], data[0].map(() => (near ? asked : null))]), [data, near, asked]);
  useEffect(() => {
    if (document.getElementById("plot-style")) return;
    const link = Object.assign(document.createElement("link"), { id: "plot-style", rel: "stylesheet", href: "/page/vendor/plot.css" });
    document.head.append(link);
  }, []);
  return html`<section class="panel plot"><div class="row"><h2 class="grow">${name}</h2><span class="soft">${asked > 0 ? t("askedNever", show(asked), show(most)) : t("neverAbove", show(most))} · ${t("mean")} ${show(mean)}</span></div>
    <div ref=${host} role="img" aria-label=${`${name}: ${t("askedNever", show(asked), show(most))}`}></div></section>`;
}
