// @ts-check
import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { get, keepSecret, send } from "../lib/api.js";
import { Trouble } from "../lib/ui.js";
import { t } from "../lib/words.js";

const VERIFIER = "pailot-verifier";

/** What went wrong with a sign-in, by the server's word. @type {Record<string, string>} */
export const SIGN_IN_TROUBLE = { "refused": "signInRefused", "not-allowed": "signInNotAllowed", "name-in-use": "signInNameInUse", "unavailable": "signInUnavailable" };

/** @param {Uint8Array} bytes */
const base64url = (bytes) => btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");

/** Goes to the identity provider. The verifier stays in this tab: only here the sign-in can end. */
async function signIn() {
  if (!crypto.subtle) throw new Error(t("signInNeedsTls"));
  const verifier = base64url(crypto.getRandomValues(new Uint8Array(32)));
  const challenge = base64url(new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(verifier))));
  sessionStorage.setItem(VERIFIER, verifier);
  const here = location.pathname === "/login" ? new URLSearchParams(location.search).get("next") ?? "/jobs" : location.pathname + location.search;
  location.assign(`/api/v2/authn/oidc/login?${new URLSearchParams({ challenge, from: here })}`);
}

/** The session of a sign-in that began in this tab. @param {string} grant */
export async function redeem(grant) {
  const verifier = sessionStorage.getItem(VERIFIER) ?? "";
  sessionStorage.removeItem(VERIFIER);
  const opened = await (await send("POST", "/session", { json: { grant, verifier }, quiet: true })).json();
  keepSecret(opened.page);
  return opened;
}

/** Whether an address is a port of this very machine. @param {string} text */
export function isOwnMachine(text) {
  try {
    const found = new URL(text);
    return found.protocol === "http:" && Boolean(found.port) && (/^127(\.\d{1,3}){3}$/.test(found.hostname) || ["localhost", "[::1]"].includes(found.hostname));
  } catch {
    return false;
  }
}

/** The end of a sign-in that the command line began: the user says yes, or copies the code. @param {{grant: string, user: string, to: string, state: string}} props */
export function CommandLine({ grant, user, to, state }) {
  const [done, setDone] = useState(false);
  const goOn = () => {
    setDone(true);
    location.replace(`${to}?${new URLSearchParams({ grant, state })}`);
  };
  return html`<div class="center panel"><div class="stack">
    <h1>Pailot</h1>
    <p>${t(to ? "commandLine" : "copyCode", user)}</p>
    ${!to && html`<p><code id="grant">${grant}</code></p>`}
    ${to && !isOwnMachine(to) && html`<${Trouble} error=${new Error(t("signInRefused"))} />`}
    ${to && isOwnMachine(to) && html`<button class="main" disabled=${done} onClick=${goOn}>${t("goOn")}</button>`}
    <p class="soft">${t("commandLineWarning")}</p>
  </div></div>`;
}

/** The log-in: a page of its own, or over a view whose session is over. @param {{overlay?: boolean, user?: string, trouble?: string, onDone: (me: any) => void}} props */
export function Login({ overlay = false, user = "", trouble = "", onDone }) {
  const [error, setError] = useState(/** @type {any} */ (trouble ? new Error(trouble) : null));
  const [ways, setWays] = useState(/** @type {{password: boolean, signInWith: string | null}} */ ({ password: true, signInWith: null }));
  useEffect(() => {
    get("/authn/info", { quiet: true }).then(setWays, () => {});
  }, []);
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
  const provider = ways.signInWith && html`<button type="button" class=${ways.password ? "" : "main"} onClick=${() => signIn().catch(setError)}>${t("signInWith", ways.signInWith)}</button>`;
  const head = overlay ? html`<p>${t("sessionOver")}</p>` : html`<h1>Pailot</h1>`;
  const form = !ways.password ? html`<div class="stack">${head}${error && html`<${Trouble} error=${error} />`}${provider}</div>` : html`<form class="stack" onSubmit=${enter}>
    ${head}
    <label>${t("user")}<input name="username" autocomplete="username" required value=${user} autofocus=${!user} /></label>
    <label>${t("password")}<input name="password" type="password" autocomplete="current-password" required autofocus=${Boolean(user)} /></label>
    ${error && html`<${Trouble} error=${error} />`}
    <button class="main" disabled=${busy}>${t("login")}</button>
    ${provider}
  </form>`;
  return overlay ? html`<dialog ref=${box} onCancel=${(/** @type {Event} */ e) => e.preventDefault()}>${form}</dialog>` : html`<div class="center panel">${form}</div>`;
}
