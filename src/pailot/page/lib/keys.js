// @ts-check
// Keys of the page, as k9s and gh have taught them. They rest while something is typed or a question is open.

import { html, useEffect, useRef } from "../vendor/preact.js";
import { go } from "./router.js";
import { t } from "./words.js";

const PAUSE_MS = 1200; // `g j` is two keys; the second must follow soon
const PLACES = /** @type {Record<string, string>} */ ({ j: "/jobs", s: "/submit", c: "/cluster", a: "/account" });

/** @param {KeyboardEvent} event */
export function typing(event) {
  const at = /** @type {Element} */ (event.composedPath()[0] ?? event.target);
  return at instanceof HTMLElement && (at.isContentEditable || /^(INPUT|SELECT|TEXTAREA)$/.test(at.tagName)) && !(at instanceof HTMLInputElement && at.type === "checkbox");
}

/** Does what `keys` names when its key is pressed. @param {Record<string, () => void>} keys @param {any[]} changes */
export function useKeys(keys, changes) {
  useEffect(() => {
    const pressed = (/** @type {KeyboardEvent} */ event) => {
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || typing(event) || afterG || document.querySelector("dialog[open]")) return;
      const act = Object.hasOwn(keys, event.key) ? keys[event.key] : undefined;
      if (!act) return;
      event.preventDefault();
      act();
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, changes);
}

let afterG = 0;

/** Keys that work everywhere. @param {{onHelp: () => void}} told */
export function useGlobalKeys({ onHelp }) {
  useEffect(() => {
    const pressed = (/** @type {KeyboardEvent} */ event) => {
      if ((event.ctrlKey || event.metaKey) && event.key === "k") {
        event.preventDefault();
        document.getElementById("goto")?.focus();
      } else if (event.ctrlKey || event.metaKey || event.altKey || typing(event) || document.querySelector("dialog[open]")) return;
      else if (event.key === "?") (event.preventDefault(), onHelp());
      else if (event.key === "g") {
        clearTimeout(afterG);
        afterG = setTimeout(() => (afterG = 0), PAUSE_MS);
      } else if (afterG && event.key in PLACES) {
        clearTimeout(afterG);
        setTimeout(() => (afterG = 0)); // handlers of the view see this key too, and must leave it alone
        event.preventDefault();
        go(PLACES[event.key]);
      }
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, []);
}

/** @param {{onClose: () => void}} props */
export function KeysHelp({ onClose }) {
  const box = useRef(/** @type {HTMLDialogElement | null} */ (null));
  useEffect(() => box.current?.showModal(), []);
  const rows = /** @type {[string[], string][]} */ ([
    [["g", "j"], t("keyJobs")], [["g", "s"], t("keySubmit")], [["g", "c"], t("keyCluster")], [["g", "a"], t("keyAccount")], [["Ctrl+K"], t("goto")],
    [["/"], t("keyFind")], [["j", "k"], t("keyMove")], [["Enter"], t("keyOpen")], [["x"], t("keyChoose")], [["s"], t("stop")], [["r"], t("rerun")],
    [["c"], t("clone")], [["l"], t("logs")], [["w"], t("keyWhy")], [["f"], t("keyFollow")], [["t"], t("keyTimes")], [["n", "N"], t("keyNext")], [["Esc"], t("keyBack")],
  ]);
  return html`<dialog ref=${box} onClose=${onClose} aria-label=${t("keys")}>
    <h1>${t("keys")}</h1>
    <dl class="keys">${rows.map(([keys, word]) => html`<dt>${keys.map((key, at) => html`${at ? " " : ""}<kbd>${key}</kbd>`)}</dt><dd>${word}</dd>`)}</dl>
    <div class="row end"><button autofocus onClick=${onClose}>${t("close")}</button></div>
  </dialog>`;
}
