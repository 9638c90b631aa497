// @ts-check
import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { ApiError, get, jobPath, send } from "../lib/api.js";
import { openEditor } from "../lib/editor.js";
import { nextName } from "../lib/format.js";
import { go } from "../lib/router.js";
import { EXAMPLE, jobWith } from "../lib/templates.js";
import { Trouble, useLoaded } from "../lib/ui.js";
import { t } from "../lib/words.js";
import { PlanRoles, Waiting } from "./job.js";

const DRAFT = "pailot-draft";
const PAUSE_MS = 250;

/** A job file on its way: checked at every pause, planned, and sent byte for byte. @param {{me: any}} props */
export function Submit({ me }) {
  const from = new URLSearchParams(location.search).get("from") ?? "";
  const entry = from.startsWith("library:") ? from.slice(8) : "";
  const source = from && from !== "example" && !entry ? from : "";
  const host = useRef(/** @type {HTMLElement | null} */ (null));
  const editor = useRef(/** @type {ReturnType<typeof openEditor> | null} */ (null));
  const [text, setText] = useState("");
  const [name, setName] = useState("");
  const [problems, setProblems] = useState(/** @type {any[]} */ ([]));
  const [plan, setPlan] = useState(/** @type {any} */ (null));
  const [tab, setTab] = useState("problems");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState(/** @type {any} */ (null));
  const sent = useRef(() => {});
  const schema = useRef(/** @type {any} */ (null));

  useEffect(() => void get("/schema").then((found) => (schema.current = found), () => {}), []);
  useEffect(() => {
    let here = true;
    const begin = async () => {
      let first = sessionStorage.getItem(DRAFT) || EXAMPLE;
      if (from === "example") first = EXAMPLE;
      if (entry) first = jobWith(await get(`/library/${entry.split("@").map(encodeURIComponent).join("/")}`));
      if (source) {
        first = await (await send("GET", `${jobPath(source)}/config?format=text`)).text();
        setName(nextName(source.split("~").pop() ?? ""));
      }
      if (!here || !host.current) return;
      setText(first);
      editor.current = openEditor(host.current, first, { onChange: setText, onSubmit: () => sent.current(), label: t("file"), schema: () => schema.current });
    };
    begin().catch(setError);
    return () => {
      here = false;
      editor.current?.close();
    };
  }, [from]);

  const query = () => {
    const asked = new URLSearchParams();
    if (name) asked.set("name", name);
    if (source.startsWith(`${me.user}~`)) asked.set("secretsOf", source);
    return asked.size ? `?${asked}` : "";
  };

  useEffect(() => {
    if (!text) return;
    if (!source) sessionStorage.setItem(DRAFT, withoutSecrets(text));
    const abort = new AbortController();
    const timer = setTimeout(async () => {
      try {
        const checked = await (await send("POST", `/validate${query()}`, { text, signal: abort.signal })).json();
        setProblems(checked.problems);
        editor.current?.mark(checked.problems);
        const wrong = checked.problems.some((/** @type {any} */ each) => each.severity === "error");
        setPlan(wrong ? null : await (await send("POST", `/plan${query()}`, { text, signal: abort.signal })).json());
        setError(null);
      } catch (found) {
        if (!abort.signal.aborted) (setPlan(null), setError(found));
      }
    }, PAUSE_MS);
    return () => (clearTimeout(timer), abort.abort());
  }, [text, name]);

  sent.current = async () => {
    setBusy(true);
    try {
      const answer = await (await send("POST", `/jobs${query()}`, { text: editor.current?.text() ?? text })).json();
      sessionStorage.removeItem(DRAFT);
      go(`/jobs/${encodeURIComponent(`${me.user}~${answer.name.split("~").pop()}`)}`);
    } catch (found) {
      setError(found);
      if (found instanceof ApiError && found.status === 409) setName(nextName(name || plan?.plan?.name || "job"));
    } finally {
      setBusy(false);
    }
  };
  const wrong = problems.filter((each) => each.severity === "error").length;
  return html`
    <div class="row">
      <h1 class="grow">${t("submit")}</h1>
      <${Templates} chosen=${entry} />
      <label>${t("jobName")} <input value=${name} placeholder=${plan?.plan?.name ?? ""} onInput=${(/** @type {any} */ e) => setName(e.target.value)} /></label>
      <button class="main" disabled=${busy || wrong > 0} onClick=${() => sent.current()}>${t("submitNow")}</button>
    </div>
    ${source.startsWith(`${me.user}~`) && text.includes("******") && html`<p class="soft">${t("secretsKept", source)}</p>`}
    ${error && html`<${Trouble} error=${error} />`}
    <div class="split">
      <div class="editor" ref=${host}></div>
      <div>
        <div class="tabs" role="tablist">${["problems", "plan"].map((each) => html`<a href="#" role="tab" aria-selected=${tab === each} aria-current=${tab === each ? "page" : undefined}
          onClick=${(/** @type {Event} */ e) => (e.preventDefault(), e.stopPropagation(), setTab(each))}>${t(each)}${each === "problems" && problems.length ? ` (${problems.length})` : ""}</a>`)}</div>
        ${tab === "problems" && html`<div>
          ${!problems.length && html`<p>${text ? t("noProblems") : t("checking")}</p>`}
          ${problems.map((each) => html`<div class="problem"><button class="quiet place" onClick=${() => editor.current?.show(each)}>${each.line}:${each.column}</button>
            <span class=${each.severity}>${each.message}</span>${each.hint ? html`<button onClick=${() => editor.current?.fix(each)}>${t("fix")}</button>` : html`<span></span>`}</div>`)}
          ${plan?.nameTaken && html`<p class="warning">${t("nameTaken")}</p>`}
          ${plan && html`<section class="panel">${plan.start.kind === "ready" ? t("wouldStart") : html`${plan.start.text}<${Waiting} reason=${plan.start} now=${Date.now()} />`}</section>`}
        </div>`}
        ${tab === "plan" && (plan ? html`<${PlanRoles} plan=${plan.plan} />` : html`<p class="soft">${t("checking")}</p>`)}
      </div>
    </div>`;
}

/** Job templates of the library, as a start. @param {{chosen: string}} props */
function Templates({ chosen }) {
  const found = useLoaded((signal) => get("/library?type=job&limit=200", { signal }), []);
  const all = found.value?.data ?? [];
  if (!all.length) return null;
  return html`<label>${t("template")} <select onChange=${(/** @type {any} */ e) => e.target.value && go(`/submit?from=${encodeURIComponent(`library:${e.target.value}`)}`)}>
    <option value=""></option>${all.map((/** @type {any} */ each) => html`<option value=${each.name} selected=${each.name === chosen}>${each.name}</option>`)}</select></label>`;
}

/** A draft keeps no secret: the block is left out. @param {string} text */
export const withoutSecrets = (text) => text.replace(/^secrets:.*\n(?:[ \t]+.*\n|\s*\n)*/m, "");
