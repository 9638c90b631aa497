// @ts-check
import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../vendor/preact.js";
import { follow, send } from "../lib/api.js";
import { LONGEST_LINE, Lines, pieces, plain } from "../lib/ansi.js";
import { bytes, count } from "../lib/format.js";
import { useKeys } from "../lib/keys.js";
import { go } from "../lib/router.js";
import { Trouble } from "../lib/ui.js";
import { t } from "../lib/words.js";

const LINE_PX = 19;
const FIRST_BYTES = 262144;
const MOST_PX = 30_000_000; // browsers end near 33.5 million pixels
const AROUND = 30;

/** What a task prints, live. @param {{run: any, path: string, here: string, role?: string, index: number}} props */
export function Logs({ run, path, here, role, index }) {
  const roles = Object.keys(run.taskRoles);
  const deciding = Object.entries(run.taskRoles).flatMap(([name, { tasks }]) => tasks.map((/** @type {any} */ each) => [name, each])).find(([, each]) => each.state === "FAILED");
  const chosen = role ?? (deciding ? deciding[0] : roles[0]);
  const at = role === undefined && deciding ? deciding[1].index : index;
  const tasks = run.taskRoles[chosen]?.tasks ?? [];
  return html`<div class="row">
      <label>${t("role")} <select value=${chosen} onChange=${(/** @type {any} */ e) => go(`${here}/logs/${encodeURIComponent(e.target.value)}/0`)}>${roles.map((each) => html`<option>${each}</option>`)}</select></label>
      <label>${t("task")} <select value=${String(at)} onChange=${(/** @type {any} */ e) => go(`${here}/logs/${encodeURIComponent(chosen)}/${e.target.value}`)}>${tasks.map((/** @type {any} */ each) => html`<option>${each.index}</option>`)}</select></label>
    </div>
    <${Log} address=${`${path}/logs/${encodeURIComponent(chosen)}/${at}`} key=${`${chosen}:${at}`} />`;
}

/** @param {{address: string}} props */
function Log({ address }) {
  const lines = useMemo(() => new Lines(), [address]);
  const [, turn] = useState(0);
  const [following, setFollowing] = useState(true);
  const [begin, setBegin] = useState(0);
  const [ended, setEnded] = useState(false);
  const [error, setError] = useState(/** @type {any} */ (null));
  const [stream, setStream] = useState("all");
  const [wanted, setWanted] = useState("");
  const [hit, setHit] = useState(0);
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(600);
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const followed = useRef(true);
  followed.current = following;

  useEffect(() => {
    const abort = new AbortController();
    lines.all.length = 0;
    lines.open = "";
    setEnded(false);
    let drawn = 0, attempt = "";
    const draw = () => (drawn ||= requestAnimationFrame(() => ((drawn = 0), turn((each) => each + 1))));
    const start = async () => {
      let from = 0, mark = "";
      try {
        const response = await send("GET", `${address}?stream=${stream}`, { headers: { Range: `bytes=-${FIRST_BYTES}` }, signal: abort.signal });
        const range = /bytes (\d+)-\d+\/(\d+)/.exec(response.headers.get("Content-Range") ?? "");
        from = range ? Number(range[1]) : 0;
        mark = from ? `${response.headers.get("X-Log-Attempt")}.${from}` : "";
        if (from) await response.text();
        else await response.body?.cancel();
      } catch (found) {
        if (/** @type {any} */ (found).status !== 404 && /** @type {any} */ (found).status !== 416) throw found;
      }
      setBegin(from);
      await follow(`${address}?stream=${stream}&follow=true`, ({ kind, data }) => {
        const now = `${data.attempt}.${data.taskAttempt}`;
        if (attempt && now !== attempt) lines.add(`${lines.open ? "\n" : ""}\u2500\u2500\u2500 ${t("attempt")} ${data.taskAttempt + 1} \u2500\u2500\u2500\n`);
        attempt = now;
        if (data.missing) lines.add(`${lines.open ? "\n" : ""}\u2500\u2500\u2500 ${t("rotated", bytes(data.missing))} \u2500\u2500\u2500\n`);
        if (data.text) lines.add(data.text);
        draw();
        if (kind === "end") setEnded(true);
        return kind === "end";
      }, { signal: abort.signal, from: mark });
    };
    start().catch((found) => abort.signal.aborted || setError(found));
    return () => (cancelAnimationFrame(drawn), abort.abort());
  }, [address, stream]);

  useLayoutEffect(() => {
    const there = box.current;
    if (!there) return;
    setHeight(there.clientHeight);
    if (followed.current) there.scrollTop = there.scrollHeight;
  });

  const total = lines.length;
  const scale = Math.max(1, (total * LINE_PX) / MOST_PX);
  const first = Math.max(0, Math.floor((top * scale) / LINE_PX) - AROUND);
  const last = Math.min(total, first + Math.ceil(height / LINE_PX) + 2 * AROUND);
  const hits = useMemo(() => {
    if (!wanted) return [];
    const found = [], small = wanted.toLowerCase();
    for (let at = 0; at < lines.length && found.length < 10000; at++) if (plain(lines.line(at)).toLowerCase().includes(small)) found.push(at);
    return found;
  }, [wanted, total]);
  const show = (/** @type {number} */ line) => {
    setFollowing(false);
    if (box.current) box.current.scrollTop = (line * LINE_PX) / scale - height / 2;
  };
  const step = (/** @type {number} */ by) => {
    if (!hits.length) return;
    const next = (hit + by + hits.length) % hits.length;
    setHit(next);
    show(hits[next]);
  };
  useKeys({ f: () => setFollowing((each) => !each), n: () => step(1), N: () => step(-1), "/": () => document.getElementById("find-log")?.focus() }, [hits, hit]);
  useEffect(() => {
    // The browser's own find sees only the rows on the screen; pressed a second time it is the browser's again.
    const find = (/** @type {KeyboardEvent} */ event) => {
      const field = document.getElementById("find-log");
      if (!(event.ctrlKey || event.metaKey) || event.key !== "f" || document.activeElement === field) return;
      event.preventDefault();
      field?.focus();
    };
    addEventListener("keydown", find);
    return () => removeEventListener("keydown", find);
  }, []);
  const scrolled = () => {
    const there = /** @type {HTMLElement} */ (box.current);
    setTop(there.scrollTop);
    const atEnd = there.scrollTop + there.clientHeight >= there.scrollHeight - 4;
    if (!atEnd && followed.current) setFollowing(false);
    if (atEnd && !followed.current) setFollowing(true);
  };
  const download = async () => {
    const blob = await (await send("GET", `${address}?stream=${stream}`)).blob();
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = "log.txt";
    link.click();
    URL.revokeObjectURL(link.href);
  };
  const marked = new Set(hits);
  return html`<div class="row">
      <select aria-label=${t("streamLabel")} value=${stream} onChange=${(/** @type {any} */ e) => setStream(e.target.value)}>${["all", "stdout", "stderr"].map((each) => html`<option>${each}</option>`)}</select>
      <input id="find-log" type="search" class="grow" placeholder=${t("find")} aria-label=${t("find")} value=${wanted}
        onInput=${(/** @type {any} */ e) => (setWanted(e.target.value), setHit(0))} onKeyDown=${(/** @type {KeyboardEvent} */ e) => e.key === "Enter" && step(e.shiftKey ? -1 : 1)} />
      <span class="soft" role="status">${wanted ? (hits.length ? t("match", hit + 1, hits.length) : t("noMatch")) : ""}</span>
      <label><input type="checkbox" checked=${following} onChange=${(/** @type {any} */ e) => setFollowing(e.target.checked)} /> ${t("follow")}</label>
      <button onClick=${download}>${t("download")}</button>
      <span class="soft">${ended ? t("ended") : t("live")} · ${count(total)}</span>
    </div>
    ${error && html`<${Trouble} error=${error} />`}
    ${begin > 0 && html`<p class="soft">… ${bytes(begin)} ${t("earlier")}: <button class="quiet" onClick=${download}>${t("download")}</button></p>`}
    <div class="log" ref=${box} onScroll=${scrolled} tabindex="0" role="region" aria-label=${t("logs")}>
      <div class="space" style=${{ height: `${(total * LINE_PX) / scale}px` }}>
        ${Array.from({ length: last - first }, (_, each) => first + each).map((at) => html`<div key=${at} class=${`line ${marked.has(at) ? "hit" : ""} ${hits[hit] === at && wanted ? "at" : ""}`}
          style=${{ top: `${(at * LINE_PX) / scale}px` }}><span class="n">${at + 1}</span><${Text} line=${lines.line(at)} /></div>`)}
      </div>
      ${total === 0 && html`<p class="soft">${ended ? t("endedSilent") : t("nothingYet")}</p>`}
    </div>`;
}

/** @param {{line: string}} props */
function Text({ line }) {
  const cut = line.length > LONGEST_LINE ? `${line.slice(0, LONGEST_LINE)} … (${bytes(line.length)})` : line;
  if (!cut.includes("\x1b")) return html`<span>${plain(cut)}</span>`;
  return html`<span>${pieces(cut).pieces.map(({ text, style }) => html`<span class=${style}>${text}</span>`)}</span>`;
}
