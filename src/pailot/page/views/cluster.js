// @ts-check
import { html, useEffect } from "../vendor/preact.js";
import { get } from "../lib/api.js";
import { amounts, duration, memory } from "../lib/format.js";
import { Trouble, useClock, useLoaded } from "../lib/ui.js";
import { t } from "../lib/words.js";

/** What there is, who holds it, who waits. */
export function Cluster() {
  const report = useLoaded((signal) => get("/capacity", { signal }), []);
  const now = useClock(2000);
  useEffect(() => {
    const timer = setInterval(() => document.hidden || report.reload(), 2000);
    return () => clearInterval(timer);
  }, []);
  if (report.error && !report.value) return html`<${Trouble} error=${report.error} retry=${report.reload} />`;
  if (!report.value) return html`<p class="soft">${t("loading")}</p>`;
  const { total, used, virtualClusters, holders, waiting, node } = report.value;
  const heads = [t("name"), t("clusters"), t("asked"), t("ran"), t("reason")];
  return html`
    <h1>${t("cluster")} <span class="soft">${node}</span></h1>
    <div class="panel bars"><${Bar} name="CPU" used=${used.cpu} total=${total.cpu} /><${Bar} name="RAM" used=${used.memory} total=${total.memory} show=${memory} />
      ${total.gpu > 0 && html`<${Bar} name="GPU" used=${used.gpu} total=${total.gpu} />`}</div>
    <div class="grid plain" role="table" aria-label=${t("clusters")}>
      <div role="row" class="head">${[t("clusters"), `${t("kept")} CPU`, "RAM", "GPU", `${t("used")} CPU`, "RAM", "GPU", t("running"), t("waiting")].map((each) => html`<span role="columnheader">${each}</span>`)}</div>
      ${Object.entries(virtualClusters).map(([name, each]) => html`<div role="row"><span role="cell"><a href=${`/jobs?all=1&vc=${encodeURIComponent(name)}`}><bdi>${name}</bdi></a></span>
        ${[each.resourcesGuaranteed.cpu, memory(each.resourcesGuaranteed.memory), each.resourcesGuaranteed.gpu, each.resourcesUsed.cpu, memory(each.resourcesUsed.memory), each.resourcesUsed.gpu, each.numActiveJobs, each.numPendingJobs].map((cell) => html`<span role="cell">${cell}</span>`)}</div>`)}
    </div>
    <h2>${t("holders")}</h2>
    ${holders.length === 0 ? html`<p>${t("nothingRuns")}</p>` : html`<${Table} rows=${holders} heads=${heads} now=${now} />`}
    <h2>${t("line")}</h2>
    ${waiting.length === 0 ? html`<p>${t("nothingWaits")}</p>` : html`<${Table} rows=${waiting} heads=${heads} now=${now} />`}`;
}

/** @param {{rows: any[], heads: string[], now: number}} props */
const Table = ({ rows, heads, now }) => html`<div class="grid holders" role="table" aria-label=${heads[0]}>
  <div role="row" class="head">${heads.map((each) => html`<span role="columnheader">${each}</span>`)}</div>
  ${rows.map((each) => html`<div role="row" key=${each.job}><span role="cell"><a href=${`/jobs/${encodeURIComponent(each.job)}`}><bdi>${each.job}</bdi></a></span>
    <span role="cell">${each.virtualCluster}</span><span role="cell">${amounts(each)}</span><span role="cell">${each.since ? duration(now - each.since) : "—"}</span>
    <span role="cell" class="soft" title=${each.reason?.text ?? ""}>${each.reason?.text ?? ""}</span></div>`)}</div>`;

/** @param {{name: string, used: number, total: number, show?: (amount: number) => string | number}} props */
const Bar = ({ name, used, total, show = (amount) => +amount.toFixed(2) }) => html`<div>
  <div class="row"><strong>${name}</strong> <span class="soft">${show(used)} / ${show(total)}</span></div>
  <div class="bar" role="img" aria-label=${`${name} ${show(used)} / ${show(total)}`}><svg viewBox="0 0 100 10" preserveAspectRatio="none"><rect width=${total ? Math.min(100, (100 * used) / total) : 0} height="10" /></svg></div></div>`;
