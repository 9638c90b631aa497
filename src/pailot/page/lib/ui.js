// @ts-check
// Small parts that every view uses.

import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { ApiError } from "./api.js";
import { duration, exactTime } from "./format.js";
import { language, stateWord, t } from "./words.js";

const ICONS = /** @type {Record<string, string>} */ ({ WAITING: "◷", RUNNING: "▶", STOPPING: "■", STOPPED: "■", SUCCEEDED: "✓", FAILED: "✕", UNKNOWN: "?" });

/** A state by icon, word and colour. @param {{state: string}} props */
export const State = ({ state }) =>
  html`<span class=${`state ${state.toLowerCase()}`}><span aria-hidden="true">${ICONS[state] ?? "•"}</span> ${stateWord(state)}</span>`;

/** A moment as the time since then; the exact one is in its title. @param {{at: number | null, now?: number}} props */
export const Ago = ({ at, now = Date.now() }) => (at ? html`<time title=${exactTime(at, language())}>${duration(now - at)}</time>` : html`<span>—</span>`);

/** @param {{error: any, retry?: () => void}} props */
export const Trouble = ({ error, retry }) =>
  html`<div class="trouble" role="alert">
    <strong>${error instanceof ApiError && error.status ? `${error.status} ${error.code}` : ""}</strong> ${error.message}
    ${retry && html` <button onClick=${retry}>${t("tryAgain")}</button>`}
  </div>`;

/**
 * Something that is loaded from the server, again whenever `keys` change or `reload` is called.
 * @template T
 * @param {(signal: AbortSignal) => Promise<T>} load
 * @param {any[]} keys
 * @returns {{value: T | undefined, error: any, reload: () => void, set: (value: T) => void}}
 */
export function useLoaded(load, keys) {
  const [state, setState] = useState(/** @type {{value?: T, error?: any}} */ ({}));
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    const abort = new AbortController();
    load(abort.signal).then(
      (value) => abort.signal.aborted || setState({ value }),
      (error) => abort.signal.aborted || setState((before) => ({ ...before, error })),
    );
    return () => abort.abort();
  }, [...keys, turn]);
  return { value: state.value, error: state.error, reload: () => setTurn((each) => each + 1), set: (value) => setState({ value }) };
}

/** The time, again every second: durations of running jobs grow. @param {number} [every] */
export function useClock(every = 1000) {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => document.hidden || setNow(Date.now()), every);
    return () => clearInterval(timer);
  }, [every]);
  return now;
}

/** @param {{text: string}} props */
export function Copy({ text }) {
  const [done, setDone] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setDone(true);
    setTimeout(() => setDone(false), 1500);
  };
  return html`<span class="copy"><code>${text}</code> <button class="quiet" onClick=${copy}>${done ? t("copied") : t("copy")}</button></span>`;
}

/** Asks before something that cannot be undone. @param {{question: string, onYes: () => void, onNo: () => void}} props */
export function Ask({ question, onYes, onNo }) {
  const box = useRef(/** @type {HTMLDialogElement | null} */ (null));
  useEffect(() => box.current?.showModal(), []);
  return html`<dialog ref=${box} onClose=${onNo}>
    <p>${question}</p>
    <div class="row end"><button onClick=${onNo}>${t("cancel")}</button><button class="danger" autofocus onClick=${onYes}>${t("yes")}</button></div>
  </dialog>`;
}
