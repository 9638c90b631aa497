// @ts-check
import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../vendor/preact.js";
import { get } from "../lib/api.js";
import { duration, exactTime, span } from "../lib/format.js";
import { barAt, lay, ticks } from "../lib/lanes.js";
import { go } from "../lib/router.js";
import { Trouble, useLoaded } from "../lib/ui.js";
import { language, stateWord, t } from "../lib/words.js";

const ROW_PX = 20, AXIS_PX = 26, HEAD_PX = 24, LEFT_PX = 120, PAD_PX = 12;
const COLOURS = /** @type {Record<string, string>} */ ({ WAITING: "--wait", RUNNING: "--run", SUCCEEDED: "--good", FAILED: "--bad", STOPPED: "--stop", STOPPING: "--stop" });

/** When each try of each task waited, ran and ended: a lane for each role. @param {{run: any, path: string, here: string, now: number}} props */
export function Timeline({ run, path, here, now }) {
  const told = useLoaded((signal) => get(`${path}/timeline`, { signal }), [path, run]);
  const [zoom, setZoom] = useState(/** @type {[number, number] | null} */ (null));
  const [over, setOver] = useState(/** @type {{bar: any, x: number, y: number} | null} */ (null));
  const [drag, setDrag] = useState(/** @type {[number, number] | null} */ (null));
  const [width, setWidth] = useState(900);
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const canvas = useRef(/** @type {HTMLCanvasElement | null} */ (null));
  const clock = run.ended ? 0 : Math.floor(now / 1000);
  const laid = useMemo(() => lay(told.value?.tasks ?? [], run.ended ? run.ended * 1000 : now, Object.keys(run.taskRoles)), [told.value, clock]);
  const [begin, end] = zoom ?? [laid.begin, laid.end];
  const tops = laid.lanes.map((lane, at) => AXIS_PX + HEAD_PX * (at + 1) + lane.first * ROW_PX);
  const height = AXIS_PX + laid.lanes.length * HEAD_PX + laid.rows * ROW_PX + 8;
  const plot = width - LEFT_PX - PAD_PX;
  const x = (/** @type {number} */ at) => LEFT_PX + ((at - begin) / (end - begin)) * plot;
  const moment = (/** @type {number} */ px) => begin + ((px - LEFT_PX) / plot) * (end - begin);
  const top = (/** @type {number} */ row) => {
    const lane = laid.lanes.findLastIndex((each) => row >= each.first);
    return tops[lane] + (row - laid.lanes[lane].first) * ROW_PX;
  };

  useEffect(() => {
    const there = box.current;
    if (!there) return;
    const watch = new ResizeObserver(() => setWidth(Math.max(320, there.clientWidth)));
    watch.observe(there);
    return () => watch.disconnect();
  }, [told.value !== undefined]);

  useLayoutEffect(() => {
    const there = canvas.current, pen = there?.getContext("2d");
    if (!there || !pen) return;
    const scale = devicePixelRatio || 1;
    there.width = Math.round(width * scale);
    there.height = Math.round(height * scale);
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    const look = getComputedStyle(there), colour = (/** @type {string} */ name) => look.getPropertyValue(name).trim();
    pen.clearRect(0, 0, width, height);
    pen.font = `12px ${look.fontFamily}`;
    pen.textBaseline = "middle";
    pen.strokeStyle = colour("--line");
    pen.fillStyle = colour("--soft");
    pen.lineWidth = 1;
    for (const at of ticks(begin, end, laid.begin, Math.max(2, Math.floor(plot / 90)))) {
      const px = Math.round(x(at)) + 0.5;
      pen.beginPath();
      pen.moveTo(px, AXIS_PX - 4);
      pen.lineTo(px, height);
      pen.stroke();
      pen.textAlign = "center";
      pen.fillText(span(at - laid.begin), px, 11);
    }
    laid.lanes.forEach((lane, each) => {
      pen.textAlign = "left";
      pen.fillStyle = colour("--ink");
      pen.font = `600 12px ${look.fontFamily}`;
      pen.fillText(`${lane.role}  × ${lane.tasks}${lane.folded ? `  (${t("folded")})` : ""}`, 12, tops[each] - HEAD_PX / 2);
      pen.font = `12px ${look.fontFamily}`;
      pen.fillStyle = colour("--soft");
      pen.textAlign = "right";
      if (!lane.folded) for (let row = 0; row < lane.rows; row++) pen.fillText(String(row), LEFT_PX - 12, tops[each] + row * ROW_PX + ROW_PX / 2);
    });
    pen.save();
    pen.beginPath();
    pen.rect(LEFT_PX, 0, plot + PAD_PX, height);
    pen.clip();
    for (const bar of laid.bars) {
      const y = top(bar.row) + 3, tall = ROW_PX - 6;
      const from = x(bar.from), began = x(bar.began), to = Math.max(x(bar.to), began + 2);
      if (to < LEFT_PX || from > width) continue;
      if (began - from > 1) {
        pen.strokeStyle = colour("--wait");
        pen.globalAlpha = 0.6;
        pen.beginPath();
        for (let px = Math.max(from, LEFT_PX - tall); px < Math.min(began, width); px += 5) {
          pen.moveTo(px, y + tall);
          pen.lineTo(Math.min(px + tall, began), y + tall - Math.min(tall, began - px));
        }
        pen.stroke();
        pen.globalAlpha = 1;
      }
      if (bar.try.started) {
        pen.fillStyle = colour(COLOURS[bar.try.state] ?? "--stop");
        pen.globalAlpha = bar.try.state === "RUNNING" ? 0.75 : 0.85;
        pen.beginPath();
        pen.roundRect(began, y, to - began, tall, Math.min(3, (to - began) / 2));
        pen.fill();
        pen.globalAlpha = 1;
      }
    }
    if (drag) {
      pen.fillStyle = colour("--accent");
      pen.globalAlpha = 0.15;
      pen.fillRect(Math.min(...drag), 0, Math.abs(drag[1] - drag[0]), height);
      pen.globalAlpha = 1;
    }
    pen.restore();
  });

  const place = (/** @type {PointerEvent} */ event) => {
    const area = /** @type {HTMLCanvasElement} */ (canvas.current).getBoundingClientRect();
    return [event.clientX - area.left, event.clientY - area.top];
  };
  const found = (/** @type {number} */ px, /** @type {number} */ py) => {
    const lane = tops.findLastIndex((each) => py >= each);
    if (lane < 0) return null;
    const row = Math.floor((py - tops[lane]) / ROW_PX);
    if (row >= laid.lanes[lane].rows) return null;
    return barAt(laid.bars, laid.lanes[lane].first + row, moment(px), ((end - begin) / plot) * 3);
  };
  const moved = (/** @type {PointerEvent} */ event) => {
    const [px, py] = place(event);
    if (drag) return setDrag([drag[0], px]);
    const bar = found(px, py);
    setOver(bar ? { bar, x: px, y: py } : null);
  };
  const up = (/** @type {PointerEvent} */ event) => {
    const [px, py] = place(event);
    const began = drag ? drag[0] : px;
    setDrag(null);
    if (Math.abs(px - began) > 6) return setZoom([moment(Math.max(LEFT_PX, Math.min(began, px))), moment(Math.max(began, px))]);
    const bar = found(px, py);
    if (bar) go(`${here}/logs/${encodeURIComponent(bar.try.role)}/${bar.try.index}?attempt=${bar.try.jobAttempt}&try=${bar.try.attempt}`);
  };
  if (told.error && !told.value) return html`<${Trouble} error=${told.error} retry=${told.reload} />`;
  if (!told.value) return html`<p class="soft">${t("loading")}</p>`;
  const each = over?.bar.try;
  return html`<div class="row"><span class="soft grow">${t("timelineHint")}</span>
      <span class="legend">${["WAITING", "RUNNING", "SUCCEEDED", "FAILED", "STOPPED"].map((state) => html`<span class=${state.toLowerCase()}><i></i>${stateWord(state)}</span>`)}</span>
      <button disabled=${!zoom} onClick=${() => setZoom(null)}>${t("wholeTime")}</button></div>
    <div class="timeline" ref=${box}>
      <canvas ref=${canvas} role="img" aria-label=${t("timelineLabel", laid.bars.length, duration(laid.end - laid.begin))} style=${{ width: `${width}px`, height: `${height}px` }}
        onPointerDown=${(/** @type {PointerEvent} */ event) => event.button === 0 && setDrag([place(event)[0], place(event)[0]])} onPointerMove=${moved} onPointerUp=${up}
        onPointerLeave=${() => (setOver(null), setDrag(null))} onDblClick=${() => setZoom(null)}></canvas>
      ${each && over && html`<div class="tip" role="tooltip" style=${{ left: `${Math.min(over.x + 14, width - 300)}px`, top: `${over.y + 16}px` }}>
        <strong><bdi>${each.role}:${each.index}</bdi></strong> ${t("tryNumber", each.attempt + 1)}${each.jobAttempt ? ` · ${t("attempt")} ${each.jobAttempt + 1}` : ""} · ${stateWord(each.state)}
        <div class="soft">${t("waited")} ${duration(over.bar.began - over.bar.from)} · ${t("ran")} ${duration(over.bar.to - over.bar.began)}</div>
        <div class="soft">${exactTime(each.started, language())}</div>${each.reason && html`<div>${each.reason}</div>`}</div>`}
    </div>`;
}
