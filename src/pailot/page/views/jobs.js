// @ts-check
import { Component, html, useEffect, useRef, useState } from "../vendor/preact.js";
import { follow, get, jobPath, post, put, remove } from "../lib/api.js";
import { amounts, count, duration } from "../lib/format.js";
import { useKeys } from "../lib/keys.js";
import { go, withQuery } from "../lib/router.js";
import { Ask, Copy, State, Trouble, useClock, useLoaded } from "../lib/ui.js";
import { stateWord, t } from "../lib/words.js";

const PAGE = 50, MOST_ROWS = 1000;
const STATES = ["WAITING", "RUNNING", "STOPPING", "SUCCEEDED", "FAILED", "STOPPED"];
const OVER = ["SUCCEEDED", "FAILED", "STOPPED"];

/** @typedef {{name: string, user: string, state: string, virtualCluster: string, submitted: number, started: number | null, ended: number | null, tasks: number, taskStates?: Record<string, number> | null, retries: number, cpus: number, memoryMB: number, gpus: number, tags: string[], reason: string | null}} Row */

/** The list of jobs; every filter stands in the address. @param {{me: any}} props */
export function Jobs({ me }) {
  const query = new URLSearchParams(location.search);
  const mine = query.get("all") !== "1", state = query.get("state") ?? "", text = query.get("q") ?? "", vc = query.get("vc") ?? "";
  const offset = Math.max(0, Number(query.get("offset")) || 0);
  const filter = new URLSearchParams();
  if (mine) filter.set("username", me.user);
  if (text) filter.set("keyword", text);
  if (vc) filter.set("vc", vc);
  const counting = filter.toString();
  if (state) filter.set("state", state);
  const asked = filter.toString();
  const size = Math.min(MOST_ROWS, Math.max(10, Number(query.get("rows")) || PAGE));
  const list = useLoaded((signal) => get(`/jobs?format=row&withTotalCount=true&limit=${size}&offset=${offset}&${asked}`, { signal }), [asked, offset, size]);
  const counts = useLoaded((signal) => get(`/jobs/counts?${counting}`, { signal }), [counting]);
  const [fresh, setFresh] = useState(0);
  const [chosen, setChosen] = useState(/** @type {string[]} */ ([]));
  const [asking, setAsking] = useState(/** @type {"" | "stop" | "rerun" | "remove"} */ (""));
  const [report, setReport] = useState("");
  const now = useClock();
  const rows = /** @type {Row[]} */ (list.value?.data ?? []);
  // Changes come faster than they are drawn. What was drawn last tells whether the list has come anew from the server.
  const latest = useRef(list.value), drawn = useRef(list.value);
  if (list.value !== drawn.current) latest.current = drawn.current = list.value;

  useEffect(() => {
    const abort = new AbortController();
    setFresh(0);
    let due = /** @type {any} */ (null), draw = 0;
    const soon = () => (due ??= setTimeout(() => ((due = null), counts.reload()), 1000));
    const ms = (/** @type {number | null} */ each) => (each ? Math.round(each * 1000) : null);
    const watched = new URLSearchParams({ ...(mine ? { user: me.user } : {}), ...(vc ? { vc } : {}) });
    follow(`/live/jobs?${watched}`, ({ kind, data }) => {
      if (kind === "reset") return void list.reload();
      const have = latest.current, at = have ? have.data.findIndex((/** @type {Row} */ each) => each.name === data.name && each.user === data.user) : -1;
      if (at >= 0) {
        const changed = [...have.data];
        changed[at] = { ...changed[at], taskStates: data.state === changed[at].state ? changed[at].taskStates : null, state: data.state, reason: data.reason || changed[at].reason, retries: data.retries, started: ms(data.started), ended: ms(data.ended) };
        latest.current = { ...have, data: changed };
        draw ||= requestAnimationFrame(() => ((draw = 0), (drawn.current = latest.current), list.set(latest.current)));
      } else if (offset === 0 && data.state === "WAITING") setFresh((each) => each + 1);
      soon();
    }, { signal: abort.signal, poll: () => list.reload() }).catch(() => {});
    return () => (clearTimeout(due), cancelAnimationFrame(draw), abort.abort());
  }, [list.value !== undefined, asked, offset, size]);

  const isOver = (/** @type {string} */ name) => OVER.includes(rows.find((each) => `${each.user}~${each.name}` === name)?.state ?? "");
  const fits = { stop: (/** @type {string} */ name) => !isOver(name), rerun: () => true, remove: isOver };
  const acts = {
    stop: (/** @type {string} */ name) => put(`${jobPath(name)}/executionType`, { value: "STOP" }),
    rerun: (/** @type {string} */ name) => post(`${jobPath(name)}/rerun`),
    remove: (/** @type {string} */ name) => remove(jobPath(name)),
  };
  /** Does one thing to all chosen jobs that it fits, and says what became of each. */
  const doChosen = async () => {
    const what = asking || "stop", some = chosen.filter(fits[what]);
    setAsking("");
    const done = await Promise.allSettled(some.map(acts[what]));
    setReport([`${t(what)}: ${done.filter((each) => each.status === "fulfilled").length} / ${some.length}`, ...done.flatMap((each, at) => (each.status === "rejected" ? [`${some[at]}: ${each.reason.message}`] : []))].join(" · "));
    setChosen([]);
    list.reload();
  };
  const total = list.value?.totalCount ?? 0;
  const links = () => [.../** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll(".grid.jobs a.name"))];
  const at = () => links().indexOf(/** @type {HTMLElement} */ (document.activeElement));
  const job = () => rows[at()] && `${rows[at()].user}~${rows[at()].name}`;
  const to = (/** @type {(name: string) => string} */ where) => void (job() && go(where(encodeURIComponent(job()))));
  const choose = (/** @type {string} */ name) => setChosen((each) => (each.includes(name) ? each.filter((other) => other !== name) : [...each, name]));
  const stoppable = () => rows[at()] && !OVER.includes(rows[at()].state);
  useKeys({
    j: () => links()[Math.min(rows.length - 1, at() + 1)]?.focus(),
    k: () => links()[Math.max(0, at() - 1)]?.focus(),
    "/": () => document.getElementById("find-jobs")?.focus(),
    x: () => void (job() && choose(job())),
    s: () => {
      if (!chosen.length && stoppable()) setChosen([job()]);
      if (chosen.some(fits.stop) || stoppable()) setAsking("stop");
    },
    c: () => to((name) => `/submit?from=${name}`),
    l: () => to((name) => `/jobs/${name}/logs`),
    w: () => to((name) => `/jobs/${name}`),
  }, [rows, chosen]);

  return html`
    <div class="row">
      <div class="chips two" role="group" aria-label=${t("user")}>
        <button aria-pressed=${mine} onClick=${() => go(withQuery({ all: null, offset: null }))}>${t("mine")}</button>
        <button aria-pressed=${!mine} onClick=${() => go(withQuery({ all: 1, offset: null }))}>${t("all")}</button>
      </div>
      <div class="chips grow" role="group" aria-label=${t("state")}>
        <button aria-pressed=${!state} onClick=${() => go(withQuery({ state: null, offset: null }))}>${t("anyState")}</button>
        ${STATES.filter((each) => counts.value?.[each] || each === state).map(
          (each) => html`<button aria-pressed=${state === each} onClick=${() => go(withQuery({ state: state === each ? null : each, offset: null }))}>${stateWord(each)} <b>${count(counts.value?.[each] ?? 0)}</b></button>`,
        )}
      </div>
      <input id="find-jobs" type="search" placeholder=${t("contains")} aria-label=${t("contains")} value=${text}
        onChange=${(/** @type {any} */ event) => go(withQuery({ q: event.target.value, offset: null }))} />
    </div>
    ${list.error && html`<${Trouble} error=${list.error} retry=${list.reload} />`}
    ${fresh > 0 && html`<p><button onClick=${() => (setFresh(0), list.reload())}>${t("newJobs", fresh)}</button></p>`}
    ${list.value && !rows.length && (total === 0 && !state && !text ? html`<${First} me=${me} />` : html`<p>${t("noJobs")} <a href="/jobs?all=1">${t("clear")}</a></p>`)}
    ${rows.length > 0 && html`<div class="grid jobs" role="table" aria-label=${t("jobs")}>
      <div role="row" class="head">${[t("name"), t("user"), t("state"), t("tasks"), t("asked"), t("waited"), t("ran"), t("because")].map((each) => html`<span role="columnheader">${each}</span>`)}</div>
      ${rows.map((row) => html`<${JobRow} key=${`${row.user}~${row.name}`} row=${row} now=${now} chosen=${chosen.includes(`${row.user}~${row.name}`)}
        onChoose=${choose} />`)}
    </div>
    <div class="row end foot"><span class="soft grow">${chosen.length > 0 ? html`${t("chosen", chosen.length)} ${/** @type {const} */ (["stop", "rerun", "remove"]).filter((each) => chosen.some(fits[each])).map((each) => html`<button class=${each === "stop" ? "danger" : ""} onClick=${() => setAsking(each)}>${t(each)} (${chosen.filter(fits[each]).length})</button> `)}` : html`<span role="status">${report}</span>`}</span>
      <span class="soft">${t("of", count(offset + 1), count(offset + rows.length), count(total))}</span>
      <button disabled=${offset === 0} onClick=${() => go(withQuery({ offset: Math.max(0, offset - size) || null }))}>${t("later")}</button>
      <button disabled=${offset + size >= total} onClick=${() => go(withQuery({ offset: offset + size }))}>${t("earlier")}</button></div>`}
    ${asking && html`<${Ask} question=${t({ stop: "confirmStop", rerun: "confirmRerun", remove: "confirmRemove" }[asking], chosen.filter(fits[asking]).join(", "))} onYes=${doChosen} onNo=${() => setAsking("")} />`}`;
}

/** A row is drawn again only if something in it has changed: there may be a thousand. */
class JobRow extends Component {
  /** @param {any} next */
  shouldComponentUpdate(next) {
    const { row, now, chosen } = /** @type {any} */ (this.props);
    return row !== next.row || chosen !== next.chosen || times(row, now).join() !== times(next.row, next.now).join();
  }

  render() {
    const { row, now, chosen, onChoose } = /** @type {{row: Row, now: number, chosen: boolean, onChoose: (name: string) => void}} */ (/** @type {unknown} */ (this.props));
    const name = `${row.user}~${row.name}`, [waited, ran, ago] = times(row, now);
    const done = row.taskStates && !OVER.includes(row.state) ? `${row.taskStates.RUNNING ?? 0}/${row.tasks}` : row.tasks;
    return html`<div role="row" class=${chosen ? "chosen" : ""}>
    <span role="cell"><input type="checkbox" aria-label=${name} checked=${chosen} onChange=${() => onChoose(name)} />
      ${" "}<a class="name" href=${`/jobs/${encodeURIComponent(name)}`}><bdi>${row.name}</bdi></a></span>
    <span role="cell"><bdi>${row.user}</bdi></span>
    <span role="cell"><${State} state=${row.state} /></span>
    <span role="cell">${done}</span>
    <span role="cell" class="soft">${amounts(row)}</span>
    <span role="cell">${waited}</span>
    <span role="cell">${ran}</span>
    <span role="cell" class="soft" title=${row.reason ?? ""}>${row.state === "SUCCEEDED" ? t("ago", ago) : (row.reason ?? "")}</span>
  </div>`;
  }
}

/** How long a job waited, ran, and has been over. @param {Row} row @param {number} now */
function times(row, now) {
  const waited = duration((row.started ?? row.ended ?? now) - row.submitted), ran = row.started ? duration((row.ended ?? now) - row.started) : "—";
  return [waited, ran, row.ended ? duration(now - row.ended) : ""];
}

/** What an empty server shows. @param {{me: any}} props */
const First = ({ me }) => html`<div class="panel">
  <h2>${t("firstRun")}</h2>
  <p><a class="button" href="/submit?from=example">${t("tryExample")}</a></p>
  <p>${t("fromShell")}</p><p><${Copy} text=${`pailot login ${location.origin} --user ${me.user}`} /></p><p><${Copy} text="pailot submit job.yaml --follow" /></p>
  ${me.admin && html`<p><a href="/admin">${t("makeUsers")}</a></p>`}
</div>`;
