// @ts-check
import { html, useState } from "../vendor/preact.js";
import { get, post, put, remove } from "../lib/api.js";
import { exactTime } from "../lib/format.js";
import { Copy, Trouble, useLoaded } from "../lib/ui.js";
import { language, setLanguage, t } from "../lib/words.js";
import { setTheme } from "../main.js";

/** One's own account: sessions and tokens by their ids, the password, how the page looks. @param {{me: any}} props */
export function Account({ me }) {
  const held = useLoaded((signal) => get("/sessions", { signal }), []);
  const [token, setToken] = useState("");
  const [error, setError] = useState(/** @type {any} */ (null));
  const [said, setSaid] = useState("");
  const [theme, setLook] = useState(document.documentElement.dataset.theme ?? "");
  const act = async (/** @type {() => Promise<any>} */ what) => {
    setError(null);
    setSaid("");
    try {
      await what();
      setSaid(t("done"));
      held.reload();
    } catch (found) {
      setError(found);
    }
  };
  const change = (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    const form = /** @type {HTMLFormElement} */ (event.target), data = new FormData(form);
    act(async () => {
      await put(`/users/${encodeURIComponent(me.user)}/password`, { data: { newPassword: data.get("new"), oldPassword: data.get("old") }, newPassword: data.get("new"), oldPassword: data.get("old") });
      form.reset();
    });
  };
  const grant = (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    const note = new FormData(/** @type {HTMLFormElement} */ (event.target)).get("note");
    act(async () => setToken((await post("/tokens/application", { note })).token));
  };
  const heads = [t("kind"), t("note"), t("created"), t("expires"), ""];
  return html`<h1>${me.user}</h1><p class="soft">${[me.email, me.admin && t("admin"), `${t("clusters")}: ${me.virtualClusters.join(", ")}`].filter(Boolean).join(" · ")}</p>
    ${error && html`<${Trouble} error=${error} />`}<p role="status">${said}</p>
    <h2>${t("sessions")}</h2>
    <div class="grid sessions" role="table" aria-label=${t("sessions")}><div role="row" class="head">${heads.map((each) => html`<span role="columnheader">${each}</span>`)}</div>
      ${(held.value ?? []).map((/** @type {any} */ each) => html`<div role="row" key=${each.id}><span role="cell">${t(`kind_${each.kind}`)} ${each.current ? `(${t("thisOne")})` : ""}</span><span role="cell" title=${each.note}>${each.note}</span>
        <span role="cell">${exactTime(each.created, language())}</span><span role="cell">${each.expires ? exactTime(each.expires, language()) : "—"}</span>
        <span role="cell"><button onClick=${() => act(() => remove(`/sessions/${each.id}`))}>${t("revoke")}</button></span></div>`)}</div>
    <p><button onClick=${() => act(() => remove("/sessions"))}>${t("everywhere")}</button></p>
    <h2>${t("newToken")}</h2>
    <form class="row" onSubmit=${grant}><input name="note" placeholder=${t("note")} aria-label=${t("note")} /><button>${t("add")}</button></form>
    ${token && html`<div class="panel"><p>${t("tokenOnce")}</p><p><${Copy} text=${token} /></p><p><${Copy} text=${`pailot login ${location.origin} --user ${me.user}`} /></p><p><${Copy} text=${`curl -H "Authorization: Bearer $TOKEN" ${location.origin}/api/v2/jobs`} /></p></div>`}
    <h2>${t("changePassword")}</h2>
    <form class="stack" onSubmit=${change}><input type="text" name="username" autocomplete="username" value=${me.user} hidden readonly /><label>${t("oldPassword")}<input name="old" type="password" autocomplete="current-password" required /></label>
      <label>${t("newPassword")}<input name="new" type="password" autocomplete="new-password" required minlength="6" /></label><button>${t("save")}</button></form>
    <h2>${t("theme")}</h2>
    <div class="row picks">${[["", "system"], ["light", "light"], ["dark", "dark"]].map(([value, word]) => html`<button aria-pressed=${theme === value} onClick=${() => (setTheme(value || null), setLook(value))}>${t(word)}</button>`)}</div>
    <h2>${t("language")}</h2>
    <div class="row picks">${[["en", "English"], ["zh", "中文"]].map(([value, word]) => html`<button aria-pressed=${language() === value} onClick=${() => (setLanguage(value), location.reload())}>${word}</button>`)}</div>`;
}
