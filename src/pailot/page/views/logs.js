// @ts-check
import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../vendor/preact.js";
import { ApiError, follow, get, send } from "../lib/api.js";
import { pieces, plain } from "../lib/ansi.js";
import { bytes, count, duration } from "../lib/format.js";
import { useKeys } from "../lib/keys.js";
import { Book, LONGEST_LINE, wholeEnd, written } from "../lib/logbook.js";
import { go } from "../lib/router.js";
import { Trouble, useLoaded } from "../lib/ui.js";
import { t } from "../lib/words.js";

const LINE_PX = 19;
const AROUND = 30; // rows that are drawn above and below what is seen
const CHUNK_BYTES = 262144;
const MOST_CHUNK_BYTES = 64 * CHUNK_BYTES;
const MOST_FOLLOWED = 500_000; // lines that are kept while the end is followed; earlier ones come back by range
const MOST_LINES = 1_000_000; // browsers end near 33.5 million pixels
const TRIMMED_AT_ONCE = 50_000;
const INDEX_PAUSE_MS = 250;

/** @typedef {{attempt: number, taskAttempt: number}} Whose */

/** What a task printed, and prints. @param {{run: any, path: string, here: string, role?: string, index: number}} props */
export function Logs({ run, path, here, role, index }) {
  const roles = Object.keys(run.taskRoles);
  const deciding = Object.entries(run.taskRoles).flatMap(([name, { tasks }]) => tasks.map((/** @type {any} */ each) => [name, each])).find(([, each]) => each.state === "FAILED");
  const chosen = role ?? (deciding ? deciding[0] : roles[0]);
  const at = role === undefined && deciding ? deciding[1].index : index;
  const tasks = run.taskRoles[chosen]?.tasks ?? [];
  const task = tasks.find((/** @type {any} */ each) => each.index === at);
  const to = (/** @type {string} */ name, /** @type {number | string} */ number) => go(`${here}/logs/${encodeURIComponent(name)}/${number}`);
  const choice = html`
    ${roles.length > 1 && html`<select aria-label=${t("role")} value=${chosen} onChange=${(/** @type {any} */ e) => to(e.target.value, 0)}>${roles.map((each) => html`<option>${each}</option>`)}</select>`}
    ${tasks.length > 1 && html`<select aria-label=${t("task")} value=${String(at)} onChange=${(/** @type {any} */ e) => to(chosen, e.target.value)}>${tasks.map((/** @type {any} */ each) => html`<option value=${String(each.index)}>${chosen}:${each.index}</option>`)}</select>`}`;
  return html`<${Log} path=${path} here=${here} role=${chosen} index=${at} tries=${task?.attempts ?? 0} failed=${task?.state === "FAILED"} choice=${choice} key=${`${chosen}:${at}`} />`;
}

/** The try and the place that the address names. */
function wished() {
  const query = new URLSearchParams(location.search), number = (/** @type {string} */ key) => (/^\d{1,15}$/.test(query.get(key) ?? "") ? Number(query.get(key)) : null);
  return { attempt: number("attempt"), taskAttempt: number("try"), at: number("at") };
}

/** @param {{path: string, here: string, role: string, index: number, tries: number, failed: boolean, choice: any}} props */
function Log({ path, role, index, tries, failed, choice }) {
  const address = `${path}/logs/${encodeURIComponent(role)}/${index}`;
  const book = useMemo(() => new Book(), [address]);
  const [turn, setTurn] = useState(0);
  const [following, setFollowing] = useState(true);
  const [live, setLive] = useState(/** @type {"live" | "apart" | "ended"} */ ("live"));
  const [error, setError] = useState(/** @type {any} */ (null));
  const [stream, setStream] = useState("all");
  const [times, setTimes] = useState(localStorage.getItem("pailot-times") === "1");
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(600);
  const [marked, setMarked] = useState(/** @type {{whose: Whose, from: number, to: number} | null} */ (null));
  const [whole, setWhole] = useState("");
  const [busy, setBusy] = useState(false);
  const past = useLoaded((signal) => get(`${path}/timeline?role=${encodeURIComponent(role)}`, { signal }), [path, role, tries]);
  const all = /** @type {any[]} */ ((past.value?.tasks ?? []).filter((/** @type {any} */ each) => each.index === index));
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const now = useRef({ following: true, set: 0, seen: 0, kept: 0, size: 0, abort: new AbortController(), loading: false, tries: all, search: "" }).current;
  now.tries = all;
  const index_ = useMemo(() => new Index(address), [address, stream]);
  const follows = (/** @type {boolean} */ yes) => {
    now.following = yes;
    now.seen = book.length + book.dropped;
    setFollowing(yes);
  };
  const draw = useMemo(() => {
    let due = 0;
    return () => (due ||= requestAnimationFrame(() => ((due = 0), setTurn((each) => each + 1))));
  }, []);

  /** One part of the log. @param {string} wanted a range @param {Partial<Record<"attempt" | "taskAttempt", number | null>>} whose */
  const part = async (wanted, whose, signal = now.abort.signal) => {
    const query = new URLSearchParams({ stream });
    if (whose.attempt != null) query.set("attempt", String(whose.attempt));
    if (whose.taskAttempt != null) query.set("taskAttempt", String(whose.taskAttempt));
    const response = await send("GET", `${address}?${query}`, { headers: { Range: `bytes=${wanted}` }, signal });
    const range = /bytes (\d+)-\d+\/(\d+)/.exec(response.headers.get("Content-Range") ?? "");
    const [attempt, taskAttempt] = (response.headers.get("X-Log-Attempt") ?? "0.0").split(".").map(Number);
    const data = new Uint8Array(await response.arrayBuffer());
    const from = range ? Number(range[1]) : 0;
    return { data, from, size: range ? Number(range[2]) : data.length, attempt, taskAttempt, over: response.headers.get("X-Log-Ended") === "true" };
  };

  /** Go on from the end of what is here. @param {boolean} one only this try */
  const listen = async (one) => {
    const { signal } = now.abort, last = book.last;
    setLive("live");
    const query = new URLSearchParams({ stream, follow: "true" });
    if (one && last) (query.set("attempt", String(last.attempt)), query.set("taskAttempt", String(last.taskAttempt)));
    await follow(`${address}?${query}`, ({ kind, data }) => {
      const same = book.last && book.last.attempt === data.attempt && book.last.taskAttempt === data.taskAttempt;
      if (!same) (book.begin(data.attempt, data.taskAttempt, data.missing ?? 0), past.reload());
      else if (data.missing) book.begin(data.attempt, data.taskAttempt, book.last.to + data.missing);
      if (data.text) book.add(data.text, data.offset);
      if (now.following && book.length > MOST_FOLLOWED + TRIMMED_AT_ONCE) book.trim(book.length - MOST_FOLLOWED);
      draw();
      if (kind === "end") return setLive("ended"), true;
      if (!now.following && book.length > MOST_LINES) return setLive("apart"), true;
    }, { signal, from: last ? `${last.attempt}.${last.taskAttempt}.${last.to}` : "" });
  };

  /** Show a try: its end, or the line at an offset. @param {{attempt?: number | null, taskAttempt?: number | null, at?: number | null}} wish */
  const open = async ({ attempt = null, taskAttempt = null, at = null }) => {
    now.abort.abort();
    now.abort = new AbortController();
    now.loading = false;
    book.clear();
    setError(null);
    follows(at === null);
    const from = at === null ? `-${CHUNK_BYTES}` : `${Math.max(0, at - CHUNK_BYTES / 2)}-${at + CHUNK_BYTES / 2}`;
    const one = taskAttempt !== null && attempt !== null;
    let reached = true;
    try {
      const found = await part(from, { attempt, taskAttempt });
      now.kept = 0;
      const begin = found.from ? found.data.indexOf(10) + 1 : 0;
      const data = found.data.subarray(begin, wholeEnd(found.data));
      book.begin(found.attempt, found.taskAttempt, found.from + begin);
      book.addBytes(data);
      now.size = found.size;
      reached = found.from + found.data.length >= found.size;
      draw();
      if (at !== null) show(book.rowOf(found.attempt, found.taskAttempt, at), true);
      else if (failed && found.over) show(decidingRow(book), true);
    } catch (found) {
      if (/** @type {any} */ (found).status === 416 && at !== null) return open({ attempt, taskAttempt });
      if (/** @type {any} */ (found).status !== 404 && /** @type {any} */ (found).status !== 416) throw found;
    }
    if (reached) await listen(one && !latest({ attempt: /** @type {number} */ (attempt), taskAttempt: /** @type {number} */ (taskAttempt) }));
    else setLive("apart");
  };
  const latest = (/** @type {Whose} */ whose) => {
    const last = now.tries[now.tries.length - 1];
    return !last || !now.tries.some((each) => each.jobAttempt > whose.attempt || (each.jobAttempt === whose.attempt && each.attempt > whose.taskAttempt));
  };
  const start = (/** @type {any} */ wish) => open(wish).catch((found) => found?.name === "AbortError" || setError(found));
  useEffect(() => {
    now.search = location.search;
    start(wished());
    return () => now.abort.abort();
  }, [address, stream]);
  useEffect(() => {
    if (now.search !== location.search) ((now.search = location.search), start(wished()));
  }, [location.search]);
  const name = (/** @type {Whose} */ whose, /** @type {number | null} */ at) => {
    const query = new URLSearchParams({ attempt: String(whose.attempt), try: String(whose.taskAttempt) });
    if (at !== null) query.set("at", String(at));
    history.replaceState(null, "", `${location.pathname}?${query}`);
    now.search = location.search;
  };

  /** Earlier lines, of this try or of the one before. */
  const before = async () => {
    const first = book.parts[0];
    if (!first || now.loading) return;
    now.loading = true;
    setBusy(true);
    try {
      let added = 0;
      if (first.from > now.kept) {
        let size = CHUNK_BYTES, from = 0, found;
        do {
          from = Math.max(now.kept, first.from - size);
          found = await part(`${from}-${first.from - 1}`, first);
          size *= 4;
        } while (found.from === from && from > now.kept && size <= MOST_CHUNK_BYTES && found.data.subarray(0, -1).indexOf(10) < 0); // a long line
        if (found.from > from) now.kept = found.from;
        added = book.addBefore(found.data, found.from, { ...first, kept: now.kept });
      } else {
        const earlier = [...now.tries].reverse().find((each) => each.jobAttempt < first.attempt || (each.jobAttempt === first.attempt && each.attempt < first.taskAttempt));
        if (!earlier) return;
        const whose = { attempt: earlier.jobAttempt, taskAttempt: earlier.attempt };
        const found = await part(`-${CHUNK_BYTES}`, whose).catch((wrong) => {
          if (wrong.status !== 416 && wrong.status !== 404) throw wrong;
          return { data: new Uint8Array(), from: 0 };
        });
        now.kept = 0;
        added = book.addBefore(found.data, found.from, { ...whose, kept: 0 });
      }
      if (box.current && !now.following) {
        now.set = box.current.scrollTop + added * LINE_PX;
        const to = now.set;
        setTop(to);
        requestAnimationFrame(() => box.current && (box.current.scrollTop = to));
      }
      draw();
    } catch (found) {
      if (/** @type {any} */ (found).code === "LogRotatedError") now.kept = first.from;
      else if (/** @type {any} */ (found).name !== "AbortError") setError(found);
    } finally {
      now.loading = false;
      setBusy(false);
    }
  };
  /** Later lines, where the window does not reach to the end. */
  const after = async () => {
    const last = book.last;
    if (!last || now.loading || live !== "apart") return;
    now.loading = true;
    try {
      const found = await part(`${last.to}-${last.to + CHUNK_BYTES}`, last);
      const data = found.data.subarray(0, wholeEnd(found.data));
      book.addBytes(data);
      draw();
      if (found.from + found.data.length >= found.size) listen(!latest(last)).catch(setError);
    } catch (found) {
      if (/** @type {any} */ (found).status === 416) listen(!latest(last)).catch(setError);
      else if (/** @type {any} */ (found).name !== "AbortError") setError(found);
    } finally {
      now.loading = false;
    }
  };

  useEffect(() => {
    const there = box.current;
    if (!there) return;
    const watch = new ResizeObserver(() => setHeight(there.clientHeight));
    watch.observe(there);
    return () => watch.disconnect();
  }, []);
  const total = book.length;
  useLayoutEffect(() => {
    const there = box.current;
    if (!there || !now.following) return;
    there.scrollTop = total * LINE_PX;
    now.set = there.scrollTop;
  });
  const show = (/** @type {number} */ row, mark = false) => {
    if (row < 0) return;
    follows(false);
    const to = Math.max(0, row * LINE_PX - height / 3);
    setTop(to);
    now.set = to;
    requestAnimationFrame(() => box.current && (box.current.scrollTop = to));
    if (mark) setMarked({ whose: { ...book.partOf(row) }, from: book.offset(row), to: book.offset(row) });
  };
  const scrolled = () => {
    const there = /** @type {HTMLElement} */ (box.current), to = there.scrollTop;
    const end = to + there.clientHeight >= total * LINE_PX - 4;
    if (now.following && to < now.set - 4) follows(false);
    else if (!now.following && end && live !== "apart" && to > now.set) follows(true);
    if (!now.following) (setTop(to), (now.set = to));
    if (to < AROUND * LINE_PX && book.parts[0]?.from > now.kept) before();
    if (end) after();
  };
  const seenTop = following ? Math.max(0, total * LINE_PX - height) : top;
  const first = Math.max(0, Math.floor(seenTop / LINE_PX) - AROUND), last = Math.min(total, first + Math.ceil(height / LINE_PX) + 2 * AROUND);
  index_.want(book, first, last, stream, draw, now.abort.signal);

  const find = useFind({ path, address, role, index, stream, book, total, show, open: start, name });
  const end = () => (live === "apart" ? start({}) : follows(true));
  useKeys({ f: () => (following ? follows(false) : end()), t: () => flip(), n: () => find.step(1), N: () => find.step(-1), End: end, "/": () => document.getElementById("find-log")?.focus() }, [find.hits, find.hit, following, live, times]);
  const flip = () => (localStorage.setItem("pailot-times", times ? "0" : "1"), setTimes(!times));
  useEffect(() => {
    // The browser's own find sees only the rows on the screen; pressed a second time it is the browser's again.
    const pressed = (/** @type {KeyboardEvent} */ event) => {
      const field = document.getElementById("find-log");
      if (!(event.ctrlKey || event.metaKey) || event.key !== "f" || document.activeElement === field) return;
      event.preventDefault();
      field?.focus();
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, []);

  const number = (/** @type {MouseEvent} */ event, /** @type {number} */ row) => {
    const whose = book.partOf(row), at = book.offset(row);
    const same = marked && marked.whose.attempt === whose.attempt && marked.whose.taskAttempt === whose.taskAttempt;
    follows(false);
    if (event.shiftKey && same && marked) setMarked({ ...marked, from: Math.min(marked.from, at), to: Math.max(marked.from, at) });
    else (setMarked({ whose: { ...whose }, from: at, to: at }), name(whose, at));
  };
  const range = () => {
    if (!marked) return [];
    const from = book.rowOf(marked.whose.attempt, marked.whose.taskAttempt, marked.from), to = book.rowOf(marked.whose.attempt, marked.whose.taskAttempt, marked.to);
    return from < 0 || to < 0 ? [] : Array.from({ length: to - from + 1 }, (_, each) => plain(book.line(from + each)));
  };
  const showAll = async (/** @type {number} */ row) => {
    const from = book.offset(row), next = book.offset(row + 1), whose = book.partOf(row);
    const found = await part(`${from}-${next > from ? next - 1 : from + (book.long.get(from) ?? 0) * 4}`, whose);
    setWhole(new TextDecoder().decode(found.data));
  };
  /** A browser fetches a file without our header: a key that opens the logs of this job for an hour stands in its address. */
  const download = async (/** @type {string} */ what) => {
    const { key } = await get(`${path}/logs/key`), whose = book.last ?? { attempt: 0, taskAttempt: 0 };
    const link = document.createElement("a");
    link.href = what === "zip" ? `/api/v2${path}/logs.zip?stream=${stream}&key=${key}` : `/api/v2${address}?stream=${stream}&attempt=${whose.attempt}&taskAttempt=${whose.taskAttempt}&download=${what}&key=${key}`;
    link.download = "";
    link.click();
  };
  const clock = useMemo(() => new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit", fractionalSecondDigits: 3, hour12: false }), []);
  const counted = book.parts[0]?.from === 0 && book.dropped === 0;
  const fresh = live === "live" && !following ? total + book.dropped - now.seen : 0;
  const lastWhose = book.last;
  const copied = marked && marked.to > marked.from ? range() : [];
  const seen = (/** @type {number} */ row) => {
    const offset = book.offset(row);
    if (offset < 0) return html`<div key=${row} class="line between" style=${{ top: `${row * LINE_PX}px` }}><span>${between(book, row, all)}</span></div>`;
    const whose = book.partOf(row), when = index_.find(whose, offset);
    const on = marked && offset >= marked.from && offset <= marked.to && whose.taskAttempt === marked.whose.taskAttempt && whose.attempt === marked.whose.attempt;
    const hit = find.on(row);
    return html`<div key=${row} class=${`line${when?.stderr && stream === "all" ? " err" : ""}${hit ? " hit" : ""}${hit === 2 ? " at" : ""}${on ? " marked" : ""}`} style=${{ top: `${row * LINE_PX}px` }}>
      <button class="n" tabindex="-1" title=${t("linkTo", count(offset))} onClick=${(/** @type {MouseEvent} */ event) => number(event, row)}>${counted ? count(row + 1 - whose.row) : count(offset)}</button>
      ${times && html`<time class="when">${when ? clock.format(when.at) : ""}</time>`}<${Text} line=${book.line(row)} />
      ${book.long.has(offset) && html` <button class="quiet" onClick=${() => showAll(row)}>${t("showAll", bytes(book.long.get(offset) ?? 0))}</button>`}</div>`;
  };
  const earlierTry = book.parts[0] && book.parts[0].from <= now.kept ? [...all].reverse().find((each) => each.jobAttempt < book.parts[0].attempt || (each.jobAttempt === book.parts[0].attempt && each.attempt < book.parts[0].taskAttempt)) : null;
  return html`<div class="row tools">
      ${choice}
      ${all.length > 1 && html`<select aria-label=${t("try")} value=${lastWhose ? `${lastWhose.attempt}.${lastWhose.taskAttempt}` : ""} onChange=${(/** @type {any} */ e) => {
        const [attempt, taskAttempt] = e.target.value.split(".").map(Number);
        name({ attempt, taskAttempt }, null);
        start({ attempt, taskAttempt });
      }}>${all.map((each) => html`<option value=${`${each.jobAttempt}.${each.attempt}`}>${each.jobAttempt ? `${t("attempt")} ${each.jobAttempt + 1} · ` : ""}${t("tryNumber", each.attempt + 1)}</option>`)}</select>`}
      <select aria-label=${t("streamLabel")} value=${stream} onChange=${(/** @type {any} */ e) => setStream(e.target.value)}>${["all", "stdout", "stderr"].map((each) => html`<option>${each}</option>`)}</select>
      <${Find} find=${find} />
      <label><input type="checkbox" checked=${times} onChange=${flip} /> ${t("times")}</label>
      <label><input type="checkbox" checked=${following} onChange=${() => (following ? follows(false) : end())} /> ${t("follow")}</label>
      <select class="menu" aria-label=${t("download")} value="" onChange=${(/** @type {any} */ e) => (download(e.target.value).catch(setError), (e.target.value = ""))}>
        <option value="" disabled selected>${t("download")}</option><option value="1">${t("thisTry")}</option><option value="gz">${t("thisTry")}, .gz</option><option value="zip">${t("allTasks")}, .zip</option></select>
      <span class="soft">${live === "ended" ? t("ended") : live === "live" ? t("live") : t("notAtEnd")} · ${count(total + book.dropped)}</span>
    </div>
    ${error && html`<${Trouble} error=${error} retry=${() => start(wished())} />`}
    <${Everywhere} find=${find} here=${role} index=${index} />
    <div class="logs">
      ${book.parts[0] && book.parts[0].from > now.kept && html`<div class="edge"><button class="quiet" disabled=${busy} onClick=${before}>↑ ${t("loadEarlier")} (${bytes(book.parts[0].from)})</button></div>`}
      ${now.kept > 0 && book.parts[0]?.from <= now.kept && html`<div class="edge soft">${t("rotated", bytes(now.kept))}</div>`}
      ${earlierTry && html`<div class="edge"><button class="quiet" disabled=${busy} onClick=${before}>↑ ${t("showTry", earlierTry.attempt + 1)}${earlierTry.reason ? `: ${earlierTry.reason}` : ""}</button></div>`}
      <div class=${times ? "log timed" : "log"} ref=${box} onScroll=${scrolled} onWheel=${(/** @type {WheelEvent} */ event) => event.deltaY < 0 && now.following && box.current && box.current.scrollTop > 0 && follows(false)} tabindex="0" role="region" aria-label=${t("logs")}>
        <div class="space" style=${{ height: `${total * LINE_PX}px` }}>${Array.from({ length: last - first }, (_, each) => seen(first + each))}</div>
        ${total === 0 && html`<p class="soft">${live === "ended" ? t("endedSilent") : t("nothingYet")}</p>`}
      </div>
      ${fresh > 0 && html`<button class="fresh" onClick=${end}>${t("newLines", count(fresh))} ↓</button>`}
      ${live === "apart" && html`<button class="fresh" onClick=${end}>${t("toEnd")} ↓</button>`}
      ${marked && html`<div class="picked">${copied.length > 1 ? t("linesPicked", count(copied.length)) : t("linePicked")}
        <button onClick=${() => navigator.clipboard.writeText(copied.length ? copied.join("\n") + "\n" : range().join("\n"))}>${t("copy")}</button>
        <button onClick=${() => (name(marked.whose, marked.from), navigator.clipboard.writeText(location.href))}>${t("copyLink")}</button>
        <button class="quiet" aria-label=${t("close")} onClick=${() => setMarked(null)}>×</button></div>`}
    </div>
    ${whole && html`<${Whole} text=${whole} onClose=${() => setWhole("")} />`}`;
}

/** What stands between two tries. @param {Book} book @param {number} row @param {any[]} tries */
function between(book, row, tries) {
  const at = book.parts.findIndex((each) => each.row === row), next = book.parts[at], gone = book.parts[at - 1];
  if (!next || !gone) return "";
  if (gone.attempt === next.attempt && gone.taskAttempt === next.taskAttempt) return t("rotated", bytes(next.from - gone.to));
  const told = (/** @type {any} */ whose) => tries.find((each) => each.jobAttempt === whose.attempt && each.attempt === whose.taskAttempt);
  const how = told(gone), began = told(next)?.started;
  const title = (/** @type {any} */ whose) => `${whose.attempt ? `${t("attempt")} ${whose.attempt + 1} · ` : ""}${t("tryNumber", whose.taskAttempt + 1)}`;
  return `${title(gone)} ${t("ended")}${how?.reason ? `: ${how.reason}` : ""}  ·  ${title(next)}${began && how?.ended ? ` (${t("later_", duration(began - how.ended))})` : ""}`;
}

/** The line that most likely says what went wrong. @param {Book} book */
function decidingRow(book) {
  for (let row = book.length - 1; row >= Math.max(0, book.length - 200); row--) if (/\b\w*(Error|Exception|error:|fatal|killed|out of memory)\b/i.test(plain(book.line(row)))) return row;
  return -1;
}

/** When lines were written, asked for as they are seen. */
class Index {
  /** @param {string} address */
  constructor(address) {
    this.address = address;
    /** @type {Map<string, {from: number, to: number, offset: number[], at: number[], stderr: boolean[]}>} */
    this.known = new Map();
    this.due = 0;
    this.none = false;
  }

  /** @param {Whose} whose @param {number} offset */
  find(whose, offset) {
    const known = this.known.get(`${whose.attempt}.${whose.taskAttempt}`);
    return known && offset >= known.from && offset < known.to ? written(known, offset) : null;
  }

  /** @param {Book} book @param {number} first @param {number} last @param {string} stream @param {() => void} done @param {AbortSignal} signal */
  want(book, first, last, stream, done, signal) {
    if (this.none || this.due || last <= first) return;
    const lacking = new Map();
    for (let row = first; row < last; row++) {
      const offset = book.offset(row), whose = book.partOf(row);
      if (offset < 0 || this.find(whose, offset)) continue;
      const key = `${whose.attempt}.${whose.taskAttempt}`, known = this.known.get(key), before = lacking.get(key);
      if (known?.from === known?.to && known && offset >= known.from) continue;
      lacking.set(key, { whose, from: Math.min(offset, before?.from ?? Infinity), to: Math.max(offset, before?.to ?? 0) });
    }
    if (!lacking.size) return;
    this.due = setTimeout(async () => {
      try {
        for (const [key, { whose, from, to }] of lacking) {
          const told = await get(`${this.address}/index?stream=${stream}&attempt=${whose.attempt}&taskAttempt=${whose.taskAttempt}&from=${Math.max(0, from - 65536)}&to=${to + 65536}&limit=20000`, { signal });
          if (!told.indexed) this.none = true;
          const end = told.more ? told.entries.offset[told.entries.offset.length - 1] : Math.min(told.size, to + 65536);
          this.known.set(key, { ...told.entries, from: Math.max(0, from - 65536), to: end });
        }
        done();
      } catch (error) {
        if (error instanceof ApiError && error.status >= 400 && error.status < 500) this.none = true;
      } finally {
        this.due = 0;
      }
    }, INDEX_PAUSE_MS);
  }
}

const FIND_PAUSE_MS = 200, FIND_AGAIN_MS = 2000, MOST_HITS = 5_000;

/** @typedef {{role: string, index: number, attempt: number, taskAttempt: number, offset: number, line: number | null, text: string}} Hit */

/** @param {string} wanted @param {boolean} regex @param {boolean} exact @returns {(line: string) => boolean} */
export function matcher(wanted, regex, exact) {
  if (regex) {
    try {
      const pattern = new RegExp(wanted, exact ? "" : "i");
      return (line) => pattern.test(line);
    } catch {
      return () => false;
    }
  }
  const needle = exact ? wanted : wanted.toLowerCase();
  return (line) => (exact ? line : line.toLowerCase()).includes(needle);
}

/**
 * Finds lines in the whole log, or in the logs of all tasks: the server looks, the page shows where.
 * @param {{path: string, role: string, index: number, stream: string, book: Book, total: number, show: (row: number) => void, open: (wish: any) => void, name: (whose: Whose, at: number) => void, [key: string]: any}} props
 */
function useFind({ path, role, index, stream, book, total, show, open, name }) {
  const [wanted, setWanted] = useState(new URLSearchParams(location.search).get("q") ?? "");
  const [regex, setRegex] = useState(false);
  const [exact, setExact] = useState(false);
  const [everywhere, setEverywhere] = useState(false);
  const [hits, setHits] = useState(/** @type {Hit[]} */ ([]));
  const [more, setMore] = useState(false);
  const [hit, setHit] = useState(0);
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
  const lines = useRef(0);
  lines.current = total + book.dropped;
  useEffect(() => {
    if (!wanted) return (setHits([]), setError(""), undefined);
    const abort = new AbortController();
    let looked = -1, fresh = true;
    const look = async () => {
      if (lines.current === looked || document.hidden) return;
      looked = lines.current;
      setBusy(true);
      try {
        const query = new URLSearchParams({ q: wanted, stream, limit: String(MOST_HITS), ...(regex ? { regex: "true" } : {}), ...(exact ? { case: "true" } : {}), ...(everywhere ? {} : { role, index: String(index) }) });
        const told = await (await send("GET", `${path}/search?${query}`, { signal: abort.signal })).text();
        const entries = told.split("\n").filter(Boolean).map((each) => JSON.parse(each)), found = /** @type {Hit[]} */ (entries.filter((each) => !each.end));
        setHits(found);
        setMore(Boolean(entries.find((each) => each.end)?.stopped));
        setError("");
        if (fresh && found.length && !everywhere) at(found, nearest(found));
        fresh = false;
      } catch (found) {
        if (abort.signal.aborted) return;
        setHits([]);
        setError(/** @type {Error} */ (found).message);
      } finally {
        if (!abort.signal.aborted) setBusy(false);
      }
    };
    const timer = setTimeout(look, FIND_PAUSE_MS), again = setInterval(look, FIND_AGAIN_MS);
    return () => (clearTimeout(timer), clearInterval(again), abort.abort());
  }, [wanted, regex, exact, everywhere, stream, path, role, index]);
  /** The first hit that is not above what is seen. @param {Hit[]} found */
  const nearest = (found) => {
    const seen = book.parts[0];
    const place = seen ? found.findIndex((each) => each.attempt > seen.attempt || (each.attempt === seen.attempt && (each.taskAttempt > seen.taskAttempt || (each.taskAttempt === seen.taskAttempt && each.offset >= seen.from)))) : 0;
    return place < 0 ? found.length - 1 : place;
  };
  /** @param {Hit[]} found @param {number} number */
  const at = (found, number) => {
    const to = found[number];
    setHit(number);
    if (to.role !== role || to.index !== index) return go(`${location.pathname.replace(/\/logs.*/, "")}/logs/${encodeURIComponent(to.role)}/${to.index}?attempt=${to.attempt}&try=${to.taskAttempt}&at=${to.offset}&q=${encodeURIComponent(wanted)}`);
    const row = book.rowOf(to.attempt, to.taskAttempt, to.offset);
    if (row >= 0) show(row);
    else (name(to, to.offset), open({ attempt: to.attempt, taskAttempt: to.taskAttempt, at: to.offset }));
  };
  const step = (/** @type {number} */ by) => void (hits.length && at(hits, (hit + by + hits.length) % hits.length));
  const test = useMemo(() => (wanted ? matcher(wanted, regex, exact) : () => false), [wanted, regex, exact]);
  const on = (/** @type {number} */ row) => {
    if (!wanted || !test(plain(book.line(row)))) return 0;
    const now = hits[hit], whose = book.partOf(row);
    return now && now.offset === book.offset(row) && now.attempt === whose.attempt && now.taskAttempt === whose.taskAttempt && now.role === role && now.index === index ? 2 : 1;
  };
  return { wanted, setWanted: (/** @type {string} */ text) => (setWanted(text), setHit(0)), regex, setRegex, exact, setExact, everywhere, setEverywhere, hits, more, hit, error, busy, step, at, on };
}

/** @param {{find: ReturnType<typeof useFind>}} props */
const Find = ({ find }) => html`<span class="find grow"><input id="find-log" type="search" placeholder=${t("find")} aria-label=${t("find")} value=${find.wanted}
    onInput=${(/** @type {any} */ e) => find.setWanted(e.target.value)} onKeyDown=${(/** @type {KeyboardEvent} */ e) => {
      if (e.key === "Enter") find.step(e.shiftKey ? -1 : 1);
      if (e.key === "Escape") (find.setWanted(""), /** @type {HTMLElement} */ (e.target).blur());
    }} />
  <span class="soft" role="status">${find.wanted ? find.error || (find.hits.length ? t("match", count(find.hit + 1), `${count(find.hits.length)}${find.more ? "+" : ""}`) : find.busy ? "…" : t("noMatch")) : ""}</span>
  ${find.wanted && html`<button class="quiet" aria-label=${t("previousHit")} onClick=${() => find.step(-1)}>↑</button><button class="quiet" aria-label=${t("nextHit")} onClick=${() => find.step(1)}>↓</button>`}
  <button class="quiet toggle" aria-pressed=${find.exact} title=${t("exactCase")} aria-label=${t("exactCase")} onClick=${() => find.setExact(!find.exact)}>Aa</button>
  <button class="quiet toggle" aria-pressed=${find.regex} title=${t("regex")} aria-label=${t("regex")} onClick=${() => find.setRegex(!find.regex)}>.*</button>
  <button class="quiet toggle" aria-pressed=${find.everywhere} onClick=${() => find.setEverywhere(!find.everywhere)}>${t("allTasks")}</button></span>`;

/** Hits in all tasks, by task and try. @param {{find: ReturnType<typeof useFind>, here: string, index: number}} props */
function Everywhere({ find }) {
  if (!find.everywhere || !find.wanted) return null;
  const groups = /** @type {Map<string, {hit: Hit, number: number}[]>} */ (new Map());
  find.hits.slice(0, 500).forEach((hit, number) => {
    const key = `${hit.role}:${hit.index} · ${hit.attempt ? `${t("attempt")} ${hit.attempt + 1} · ` : ""}${t("tryNumber", hit.taskAttempt + 1)}`;
    groups.set(key, [...(groups.get(key) ?? []), { hit, number }]);
  });
  return html`<div class="panel hits" role="list" aria-label=${t("allTasks")}>${[...groups].map(([title, some]) => html`<div role="listitem"><strong><bdi>${title}</bdi></strong> <span class="soft">${some.length}</span>
    ${some.slice(0, 20).map(({ hit, number }) => html`<button class="quiet hit-line mono" onClick=${() => find.at(find.hits, number)}><span class="soft">${hit.line ?? count(hit.offset)}</span> ${plain(hit.text).slice(0, 300)}</button>`)}</div>`)}
    ${!find.hits.length && !find.busy && html`<p class="soft">${find.error || t("noMatch")}</p>`}</div>`;
}

/** A long line, whole. @param {{text: string, onClose: () => void}} props */
function Whole({ text, onClose }) {
  const dialog = useRef(/** @type {HTMLDialogElement | null} */ (null));
  useEffect(() => dialog.current?.showModal(), []);
  return html`<dialog ref=${dialog} class="wide" onClose=${onClose}><pre class="text wrapped" tabindex="0">${plain(text)}</pre><div class="row end"><button onClick=${() => navigator.clipboard.writeText(text)}>${t("copy")}</button><button autofocus onClick=${onClose}>${t("close")}</button></div></dialog>`;
}

/** @param {{line: string}} props */
function Text({ line }) {
  const cut = line.length > LONGEST_LINE ? line.slice(0, LONGEST_LINE) : line;
  if (!cut.includes("\x1b")) return html`<span>${plain(cut)}</span>`;
  return html`<span>${pieces(cut).pieces.map(({ text, style }) => html`<span class=${style}>${text}</span>`)}</span>`;
}
