// @ts-check
import { html, useState } from "../vendor/preact.js";
import { get, post, remove } from "../lib/api.js";
import { Ask, Trouble, useLoaded } from "../lib/ui.js";
import { t } from "../lib/words.js";

/** The users of the server, for administrators. */
export function Users() {
  const users = useLoaded((signal) => get("/users", { signal }), []);
  const clusters = useLoaded((signal) => get("/virtual-clusters", { signal }), []);
  const [error, setError] = useState(/** @type {any} */ (null));
  const [asking, setAsking] = useState("");
  const act = async (/** @type {() => Promise<any>} */ what) => {
    setError(null);
    setAsking("");
    try {
      await what();
      users.reload();
    } catch (found) {
      setError(found);
    }
  };
  const add = (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    const form = /** @type {HTMLFormElement} */ (event.target), data = new FormData(form);
    act(async () => {
      await post("/users", { username: data.get("username"), password: data.get("password"), email: data.get("email") ?? "", admin: data.get("admin") === "on", virtualCluster: data.getAll("vc") });
      form.reset();
    });
  };
  const heads = [t("user"), t("email"), t("admin"), t("clusters"), ""];
  return html`<h1>${t("users")}</h1>${(error || users.error) && html`<${Trouble} error=${error ?? users.error} />`}
    <div class="grid holders" role="table" aria-label=${t("users")}><div role="row" class="head">${heads.map((each) => html`<span role="columnheader">${each}</span>`)}</div>
      ${(users.value ?? []).map((/** @type {any} */ each) => html`<div role="row" key=${each.username}><span role="cell"><bdi>${each.username}</bdi></span><span role="cell">${each.email}</span>
        <span role="cell">${each.admin ? t("yes") : ""}</span><span role="cell">${(each.virtualCluster ?? []).join(", ")}</span>
        <span role="cell">${!each.admin && html`<button onClick=${() => setAsking(each.username)}>${t("remove")}</button>`}</span></div>`)}</div>
    <h2>${t("addUser")}</h2>
    <form class="stack" onSubmit=${add}><label>${t("user")}<input name="username" required pattern="[A-Za-z0-9_.\-]+" autocomplete="off" /></label>
      <label>${t("password")}<input name="password" type="password" required minlength="6" autocomplete="new-password" /></label>
      <label>${t("email")}<input name="email" type="email" /></label>
      <div>${Object.keys(clusters.value ?? {}).filter((each) => each !== "default").map((each) => html`<label class="row"><input type="checkbox" name="vc" value=${each} /> ${each}</label>`)}</div>
      <div class="row"><input type="checkbox" name="admin" id="make-admin" /> <label for="make-admin">${t("admin")}</label></div>
      <button class="main">${t("add")}</button></form>
    ${asking && html`<${Ask} question=${t("confirmRemove", asking)} onYes=${() => act(() => remove(`/users/${encodeURIComponent(asking)}`))} onNo=${() => setAsking("")} />`}`;
}
