// @ts-check
import { html, useEffect, useState } from "../vendor/preact.js";
import { get } from "../lib/api.js";
import { amounts, duration, memory } from "../lib/format.js";
import { Trouble, useClock, useLoaded } from "../lib/ui.js";
import { t } from "../lib/words.js";

const COLOURS = 6;
const MOST_SQUARES = 64;

/** @typedef {{cpu: number, memory: number, gpu: number}} Resources */

/** What there is, who holds it, who waits. @param {{more: string[]}} props */
export function Cluster({ more }) {
  const report = useLoaded((signal) => get("/capacity", { signal }), []);
  const past = useLoaded((signal) => get("/capacity?history=24h", { signal }), []);
  const now = useClock(2000);
  const [by, setBy] = useState("gpus");
  useEffect(() => {
    const timer = setInterval(() => document.hidden || report.reload(), 2000);
    const slow = setInterval(() => document.hidden || past.reload(), 60000);
    return () => (clearInterval(timer), clearInterval(slow));
  }, []);
  if (report.error && !report.value) return html`<${Trouble} error=${report.error} retry=${report.reload} />`;
  if (!report.value) return html`<p class="soft">${t("loading")}</p>`;
  const { total, used, virtualClusters, node } = report.value;
  const only = more[0] ?? "", here = (/** @type {any} */ each) => !only || each.virtualCluster === only;
  const holders = report.value.holders.filter(here).sort((/** @type {any} */ one, /** @type {any} */ other) => other[by] - one[by] || other.cpus - one.cpus);
  const waiting = report.value.waiting.filter(here);
  const gpus = waiting.reduce((/** @type {number} */ sum, /** @type {any} */ each) => sum + each.gpus, 0);
  const resources = (/** @type {Resources} */ { cpu, memory: mb, gpu }) => amounts({ cpus: cpu, memoryMB: mb, gpus: gpu });
  return html`
    <div class="row"><h1>${only ? html`<a href="/cluster">${t("cluster")}</a> › <bdi>${only}</bdi>` : t("cluster")}</h1> <span class="soft grow">${node}</span>
      <span class="soft">${waiting.length ? t("waitingJobs", waiting.length, gpus) : t("nothingWaits")}</span></div>
    <div class="panel bars"><${Bar} name="CPU" used=${used.cpu} total=${total.cpu} /><${Bar} name=${t("memory")} used=${used.memory} total=${total.memory} show=${memory} />
      ${total.gpu > 0 && html`<${Gpus} used=${used.gpu} total=${total.gpu} holders=${report.value.holders} />`}</div>
    ${past.value?.history?.at.length > 1 && html`<${Past} history=${past.value.history} total=${total} />`}
    <div class="grid clusters" role="table" aria-label=${t("clusters")}>
      <div role="row" class="head">${[t("clusters"), t("kept"), t("used"), t("freeNow"), t("running"), t("waiting")].map((each) => html`<span role="columnheader">${each}</span>`)}</div>
      ${Object.entries(virtualClusters).map(([name, each]) => html`<div role="row"><span role="cell"><a href=${`/cluster/${encodeURIComponent(name)}`}><bdi>${name}</bdi></a></span>
        <span role="cell" class="soft">${resources(each.resourcesGuaranteed)}</span><span role="cell">${resources(each.resourcesUsed)} ${beyond(each) && html`<span class="warning" title=${t("borrowed")}>(${beyond(each)})</span>`}</span>
        <span role="cell">${resources(left(each.resourcesGuaranteed, each.resourcesUsed))}</span>
        <span role="cell"><a href=${`/jobs?all=1&state=RUNNING&vc=${encodeURIComponent(name)}`}>${each.numActiveJobs}</a></span><span role="cell"><a href=${`/jobs?all=1&state=WAITING&vc=${encodeURIComponent(name)}`}>${each.numPendingJobs}</a></span></div>`)}
    </div>
    <div class="row"><h2 class="grow">${t("holders")}</h2>${holders.length > 1 && html`<div class="chips two" role="group" aria-label=${t("orderBy")}>${[["gpus", "GPU"], ["cpus", "CPU"], ["memoryMB", t("memory")]].map(([key, word]) => html`<button aria-pressed=${by === key} onClick=${() => setBy(key)}>${word}</button>`)}</div>`}</div>
    ${holders.length === 0 ? html`<p class="soft">${t("nothingRunsFree", total.cpu)}</p>` : html`<${Table} label=${t("holders")} heads=${[t("name"), t("clusters"), t("holds"), t("sinceWord"), ""]} rows=${holders} now=${now} />`}
    <h2>${t("line")}</h2>
    ${waiting.length === 0 ? html`<p class="soft">${t("nothingWaits")}</p>` : html`<${Table} label=${t("line")} heads=${["", t("name"), t("clusters"), t("asked"), t("reason")]} rows=${waiting} now=${now} line=${true} />`}`;
}

/** @param {Resources} kept @param {Resources} used */
const left = (kept, used) => ({ cpu: Math.max(0, kept.cpu - used.cpu), memory: Math.max(0, kept.memory - used.memory), gpu: Math.max(0, kept.gpu - used.gpu) });

/** What a virtual cluster uses beyond what is kept for it. @param {{resourcesUsed: Resources, resourcesGuaranteed: Resources}} each */
function beyond({ resourcesUsed: used, resourcesGuaranteed: kept }) {
  const parts = [used.cpu > kept.cpu && `+${+(used.cpu - kept.cpu).toFixed(2)} CPU`, used.memory > kept.memory && `+${memory(used.memory - kept.memory)}`, used.gpu > kept.gpu && `+${used.gpu - kept.gpu} GPU`];
  return parts.filter(Boolean).join(", ");
}

/** @param {{rows: any[], heads: string[], now: number, label: string, line?: boolean}} props */
const Table = ({ rows, heads, now, label, line = false }) => html`<div class=${line ? "grid line" : "grid holders"} role="table" aria-label=${label}>
  <div role="row" class="head">${heads.map((each) => html`<span role="columnheader">${each}</span>`)}</div>
  ${rows.map((each) => html`<div role="row" key=${each.job}>
    ${line && html`<span role="cell" class=${each.reason?.kind === "never" ? "error" : "soft"}>${each.reason?.kind === "never" ? "✕" : (each.reason?.position || "")}</span>`}
    <span role="cell"><a href=${`/jobs/${encodeURIComponent(each.job)}`}><bdi>${each.job}</bdi></a></span><span role="cell" class="soft"><bdi>${each.virtualCluster}</bdi></span><span role="cell">${amounts(each)}</span>
    ${!line && html`<span role="cell">${each.since ? duration(now - each.since) : "—"}</span><span role="cell"><a href=${`/jobs/${encodeURIComponent(each.job)}/usage`}>${t("usage")}</a></span>`}
    ${line && html`<span role="cell" class=${each.reason?.kind === "never" ? "error" : "soft"} title=${each.reason?.text ?? ""}>${each.reason?.text ?? ""}</span>`}</div>`)}</div>`;

const DAY_MS = 86400000, SHORTEST_MS = 900000;

/** The last 24 hours, each amount as a share of the whole. @param {{history: {at: number[], cpus: number[], memoryMB: number[], gpus: number[], waiting: number[]}, total: Resources}} props */
function Past({ history, total }) {
  const end = history.at[history.at.length - 1], length = Math.min(DAY_MS, Math.max(SHORTEST_MS, end - history.at[0])), x = (/** @type {number} */ at) => ((at - end + length) / length) * 1000;
  const lines = /** @type {[string, number[], number][]} */ ([["CPU", history.cpus, total.cpu], [t("memory"), history.memoryMB, total.memory], ...(total.gpu ? [["GPU", history.gpus, total.gpu]] : [])]);
  const most = Math.max(1, ...history.waiting);
  const path = (/** @type {number[]} */ values, /** @type {number} */ whole) => history.at.map((at, each) => `${each && at - history.at[each - 1] < 600000 ? "L" : "M"}${x(at).toFixed(1)} ${(100 - (whole ? (100 * values[each]) / whole : 0)).toFixed(1)}`).join("");
  return html`<section class="panel past" aria-label=${t("lastDay")}><div class="row"><strong class="grow">${t("lastDay")}</strong><span class="legend">${lines.map(([name], number) => html`<span class=${`curve${number}`}><i></i>${name}</span>`)}<span class="curve3"><i></i>${t("waiting")} (≤ ${Math.ceil(most)})</span></span></div>
    <svg viewBox="0 0 1000 100" preserveAspectRatio="none" role="img" aria-label=${t("lastDay")}>${[25, 50, 75].map((y) => html`<path class="rule" d=${`M0 ${y}H1000`} />`)}
      <path class="curve3" d=${path(history.waiting, most)} />${lines.map(([, values, whole], number) => html`<path class=${`curve${number}`} d=${path(values, whole)} />`)}</svg>
    <div class="row between soft">${[1, 0.75, 0.5, 0.25].map((part) => html`<span>−${duration(length * part)}</span>`)}<span>${t("nowWord")}</span></div></section>`;
}

/** GPUs as squares, each in the colour of the job that holds it. @param {{used: number, total: number, holders: any[]}} props */
function Gpus({ used, total, holders }) {
  if (total > MOST_SQUARES) return html`<${Bar} name="GPU" used=${used} total=${total} />`;
  const squares = holders.flatMap((each, number) => Array.from({ length: each.gpus }, () => ({ job: each.job, colour: number % COLOURS })));
  return html`<div><div class="row"><strong>GPU</strong> <span class="soft">${used} / ${total}</span></div>
    <div class="squares" role="img" aria-label=${`GPU ${used} / ${total}`}>${Array.from({ length: total }, (_, each) => html`<i class=${squares[each] ? `held${squares[each].colour}` : ""} title=${squares[each]?.job ?? t("free")}></i>`)}</div></div>`;
}

/** @param {{name: string, used: number, total: number, show?: (amount: number) => string | number}} props */
const Bar = ({ name, used, total, show = (amount) => +amount.toFixed(2) }) => html`<div>
  <div class="row"><strong>${name}</strong> <span class="soft">${show(used)} / ${show(total)}</span></div>
  <div class="bar" role="img" aria-label=${`${name} ${show(used)} / ${show(total)}`}><svg viewBox="0 0 100 10" preserveAspectRatio="none"><rect width=${total ? Math.min(100, (100 * used) / total) : 0} height="10" /></svg></div></div>`;
