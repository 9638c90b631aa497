// @ts-check
import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { keepSecret, send } from "../lib/api.js";
import { Trouble } from "../lib/ui.js";
import { t } from "../lib/words.js";

/** The log-in: a page of its own, or over a view whose session is over. @param {{overlay?: boolean, user?: string, onDone: (me: any) => void}} props */
export function Login({ overlay = false, user = "", onDone }) {
  const [error, setError] = useState(/** @type {any} */ (null));
  const [busy, setBusy] = useState(false);
  const box = useRef(/** @type {HTMLDialogElement | null} */ (null));
  useEffect(() => box.current?.showModal(), []);
  const enter = async (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    const form = new FormData(/** @type {HTMLFormElement} */ (event.target));
    setBusy(true);
    setError(null);
    try {
      const json = { username: form.get("username"), password: form.get("password") };
      const opened = await (await send("POST", "/session", { json, quiet: true })).json();
      keepSecret(opened.page);
      onDone(opened);
    } catch (found) {
      setError(found);
    } finally {
      setBusy(false);
    }
  };
  const form = html`<form class="stack" onSubmit=${enter}>
    ${overlay ? html`<p>${t("sessionOver")}</p>` : html`<h1>Pailot</h1>`}
    <label>${t("user")}<input name="username" autocomplete="username" required value=${user} autofocus=${!user} /></label>
    <label>${t("password")}<input name="password" type="password" autocomplete="current-password" required autofocus=${Boolean(user)} /></label>
    ${error && html`<${Trouble} error=${error} />`}
    <button class="main" disabled=${busy}>${t("login")}</button>
  </form>`;
  return overlay ? html`<dialog ref=${box} onCancel=${(/** @type {Event} */ e) => e.preventDefault()}>${form}</dialog>` : html`<div class="center panel">${form}</div>`;
}
