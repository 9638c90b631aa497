// @ts-check
// The frame of the page: who is logged in, which view the address names, and what is wrong with the line.

import { html, render, useEffect, useState } from "./vendor/preact.js";
import { get, keepSecret, news, pageSecret, remove, send } from "./lib/api.js";
import { KeysHelp, useGlobalKeys } from "./lib/keys.js";
import { go, onClick, watch } from "./lib/router.js";
import { safeNext } from "./lib/format.js";
import { startLanguage, t } from "./lib/words.js";
import { CommandLine, Login, SIGN_IN_TROUBLE, redeem } from "./views/login.js";
import { Jobs } from "./views/jobs.js";

/** @typedef {{user: string, admin: boolean, virtualClusters: string[], email: string}} Me */

const THEME = "pailot-theme";

/** @param {string | null} theme */
export function setTheme(theme) {
  if (theme) {
    localStorage.setItem(THEME, theme);
    document.documentElement.dataset.theme = theme;
  } else {
    localStorage.removeItem(THEME);
    delete document.documentElement.dataset.theme;
  }
}

/** Views that are loaded when they are first looked at. */
const LATER = /** @type {Record<string, () => Promise<any>>} */ ({
  job: async () => (await import("./views/job.js")).Job,
  submit: async () => (await import("./views/submit.js")).Submit,
  cluster: async () => (await import("./views/cluster.js")).Cluster,
  library: async () => (await import("./views/library.js")).Library,
  account: async () => (await import("./views/account.js")).Account,
  admin: async () => (await import("./views/admin.js")).Admin,
  alerts: async () => (await import("./views/alerts.js")).Alerts,
});

function useAddress() {
  const [, turn] = useState(0);
  useEffect(() => watch(() => turn((each) => each + 1)), []);
  return location.pathname;
}

/** @param {{name: string, me: Me, [key: string]: any}} props */
function Later({ name, ...props }) {
  const [view, setView] = useState(/** @type {{name: string, part: any} | null} */ (null));
  useEffect(() => {
    let here = true;
    LATER[name]().then((part) => here && setView({ name, part }));
    return () => void (here = false);
  }, [name]);
  if (!view || view.name !== name) return html`<p class="soft">${t("loading")}</p>`;
  return html`<${view.part} ...${props} />`;
}

/** @param {{me: Me, path: string}} props */
function View({ me, path }) {
  const [, first, ...rest] = path.split("/").map(decodeURIComponent);
  if (first === "" || (first === "jobs" && !rest[0])) return html`<${Jobs} me=${me} />`;
  if (first === "jobs") return html`<${Later} name="job" me=${me} job=${rest[0]} tab=${rest[1] ?? ""} more=${rest.slice(2)} key=${rest[0]} />`;
  if (first in LATER) return html`<${Later} name=${first} me=${me} more=${rest} />`;
  return html`<p>${t("notFound")}</p>`;
}

/** @param {{me: Me, onOut: () => void}} props */
function Top({ me, onOut }) {
  const path = useAddress();
  const [alerts, setAlerts] = useState(0);
  useEffect(() => {
    const look = () => document.hidden || get("/alerts", { quiet: true }).then((found) => setAlerts(found.length), () => {});
    look();
    const timer = setInterval(look, 60000);
    return () => clearInterval(timer);
  }, []);
  const entries = [["/jobs", t("jobs")], ["/submit", t("submit")], ["/cluster", t("cluster")], ["/library", t("library")], ...(me.admin ? [["/admin", t("administration")]] : [])];
  const out = async () => {
    await remove("/session").catch(() => {});
    keepSecret("");
    sessionStorage.clear();
    onOut();
  };
  return html`<header class="top">
    <a class="skip" href="#content">${t("skip")}</a>
    <a class="brand" href="/jobs"><img src="/page/icon.svg" width="22" height="22" alt="" /> Pailot</a>
    <nav aria-label="Pailot">
      ${entries.map(([to, word]) => html`<a href=${to} aria-current=${path === to || path.startsWith(`${to}/`) || (to === "/jobs" && path === "/") ? "page" : undefined}>${word}</a>`)}
    </nav>
    <form role="search" onSubmit=${(/** @type {SubmitEvent} */ event) => {
      event.preventDefault();
      const field = /** @type {HTMLInputElement} */ (document.getElementById("goto")), wish = field.value.trim();
      field.value = "";
      field.blur();
      if (wish.includes("~")) go(`/jobs/${encodeURIComponent(wish)}`);
      else if (wish) go(`/jobs?all=1&q=${encodeURIComponent(wish)}`);
    }}><input id="goto" class="goto" type="search" placeholder=${t("gotoHint")} aria-label=${t("goto")} /></form>
    ${alerts > 0 && html`<a href="/alerts" class="bell" aria-label=${`${alerts} ${t("alerts")}`}><span aria-hidden="true">⚠ ${alerts}</span></a>`}
    <a class="me" href="/account">${me.user}</a>
    <button class="quiet" onClick=${out}>${t("logout")}</button>
  </header>`;
}

function App() {
  const path = useAddress();
  const [me, setMe] = useState(/** @type {Me | null | undefined} */ (undefined));
  const [over, setOver] = useState(false);
  const [line, setLine] = useState(true);
  const [help, setHelp] = useState(false);
  const [trouble, setTrouble] = useState("");
  const [command, setCommand] = useState(/** @type {any} */ (null));
  useGlobalKeys({ onHelp: () => setHelp(true) });
  useEffect(() => {
    const said = new URLSearchParams(location.hash.slice(1));
    const code = said.get("code"), error = said.get("error"), grant = said.get("grant");
    const begin = async () => {
      if (location.pathname === "/login" && (grant || error)) {
        history.replaceState(null, "", location.pathname + location.search);
        if (error) setTrouble(t(SIGN_IN_TROUBLE[error] ?? "signInRefused"));
        else if (said.get("for") === "command") return setCommand({ grant, user: said.get("user"), to: said.get("to"), state: said.get("state") });
        else return entered(await redeem(String(grant)));
        setMe(pageSecret() ? await get("/session", { quiet: true }) : null);
      } else if (code) {
        history.replaceState(null, "", location.pathname + location.search);
        const opened = await (await send("POST", "/session", { json: { code }, quiet: true })).json();
        keepSecret(opened.page);
        setMe(opened);
      } else setMe(pageSecret() ? await get("/session", { quiet: true }) : null);
    };
    begin().catch((found) => {
      if (grant) setTrouble(found.message);
      setMe(null);
    });
    const isOver = () => setOver(true);
    const onLine = (/** @type {any} */ event) => setLine(event.detail);
    news.addEventListener("session-over", isOver);
    news.addEventListener("line", onLine);
    addEventListener("click", onClick);
    return () => {
      news.removeEventListener("session-over", isOver);
      news.removeEventListener("line", onLine);
    };
  }, []);
  const entered = (/** @type {Me} */ found) => {
    setMe(found);
    setOver(false);
    if (path === "/login") go(safeNext(new URLSearchParams(location.search).get("next"), location.origin), { replace: true });
  };
  if (command) return html`<main id="content"><${CommandLine} ...${command} /></main>`;
  if (me === undefined) return null;
  if (me === null) return html`<main id="content"><${Login} trouble=${trouble} onDone=${entered} /></main>`;
  return html`
    <${Top} me=${me} onOut=${() => setMe(null)} />
    ${!line && html`<div class="lost" role="status">${t("lineLost")}</div>`}
    <main id="content"><${View} me=${me} path=${path === "/login" ? "/jobs" : path} /></main>
    ${help && html`<${KeysHelp} onClose=${() => setHelp(false)} />`}
    ${over && html`<${Login} overlay=${true} user=${me.user} onDone=${entered} />`}`;
}

startLanguage();
setTheme(localStorage.getItem(THEME));
render(html`<${App} />`, /** @type {Element} */ (document.getElementById("page")));
