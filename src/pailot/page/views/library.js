// @ts-check
import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { get, remove, send } from "../lib/api.js";
import { bytes, count } from "../lib/format.js";
import { go, withQuery } from "../lib/router.js";
import { NEW_ENTRY, reference } from "../lib/templates.js";
import { Ago, Ask, Copy, Trouble, useLoaded } from "../lib/ui.js";
import { t } from "../lib/words.js";

const TYPES = ["data", "script", "output", "dockerimage", "job"];
const PAGE = 50;
const PAUSE_MS = 250;

/** @param {{name: string, version?: string}} entry */
const pathOf = ({ name, version }) => `/library/${encodeURIComponent(name)}${version ? `/${encodeURIComponent(version)}` : ""}`;

/** What a team shares: prerequisites, data sets, job templates. @param {{me: any, more: string[]}} props */
export function Library({ me, more }) {
  const query = new URLSearchParams(location.search);
  if (query.has("edit")) return html`<${Edit} name=${more[0] ?? ""} version=${more[1] ?? ""} key=${location.pathname} />`;
  if (more[0]) return html`<${Entry} name=${more[0]} version=${more[1] ?? ""} key=${location.pathname} />`;
  return html`<${List} me=${me} />`;
}

/** @param {{me: any}} props */
function List({ me }) {
  const query = new URLSearchParams(location.search), words = query.get("q") ?? "", kind = query.get("type") ?? "", from = Number(query.get("from")) || 0;
  const asked = new URLSearchParams({ q: words, type: kind, offset: String(from), limit: String(PAGE) });
  const found = useLoaded((signal) => get(`/library?${asked}`, { signal }), [String(asked)]);
  const rows = found.value?.data ?? [], total = found.value?.totalCount ?? 0;
  const search = useRef(0);
  const change = (/** @type {Record<string, any>} */ changes) => go(withQuery({ from: null, ...changes }), { replace: true });
  return html`<div class="row"><h1 class="grow">${t("library")}</h1>${found.value?.mayAdd && html`<a class="button main" href="/library?edit=1">${t("newEntry")}</a>`}</div>
    <div class="row">
      <input type="search" class="grow" aria-label=${t("find")} placeholder=${t("searchLibrary")} value=${words} onInput=${(/** @type {any} */ e) => (clearTimeout(search.current), (search.current = setTimeout(() => change({ q: e.target.value }), PAUSE_MS)))} />
      <label>${t("kind")} <select value=${kind} onChange=${(/** @type {any} */ e) => change({ type: e.target.value })}><option value="">${t("all")}</option>${TYPES.map((each) => html`<option value=${each} selected=${each === kind}>${t(`type_${each}`)}</option>`)}</select></label>
    </div>
    ${found.error && html`<${Trouble} error=${found.error} retry=${found.reload} />`}
    ${found.value && !rows.length && html`<div class="panel"><p>${words || kind ? t("noEntry") : t("emptyLibrary")}</p>${!words && !kind && me.admin && html`<${Copy} text=${`pailot library add FILE --server ${location.origin}`} />`}</div>`}
    ${rows.length > 0 && html`<div class="grid library" role="table" aria-label=${t("library")}>
      <div role="row" class="head">${[t("name"), t("kind"), t("size"), t("owner"), t("uses"), t("description")].map((each) => html`<span role="columnheader">${each}</span>`)}</div>
      ${rows.map((/** @type {any} */ each) => html`<div role="row" key=${each.name}>
        <span role="cell"><a class="name" href=${pathOf({ name: each.name })}><bdi>${each.name}</bdi></a> <span class="soft">${each.version}</span></span>
        <span role="cell">${t(`type_${each.type}`)}</span><span role="cell">${each.size === null ? "" : bytes(each.size)}</span>
        <span role="cell"><bdi>${each.owner}</bdi></span><span role="cell">${count(each.uses)}</span>
        <span role="cell" title=${each.description}><bdi>${each.description}</bdi></span></div>`)}</div>
      <div class="row end soft"><span>${t("of", count(from + 1), count(from + rows.length), count(total))}</span>
        ${from > 0 && html`<button onClick=${() => go(withQuery({ from: Math.max(0, from - PAGE) || null }))}>${t("back")}</button>`}
        ${from + rows.length < total && html`<button onClick=${() => go(withQuery({ from: from + PAGE }))}>${t("more")}</button>`}</div>`}`;
}

/** @param {{name: string, version: string}} props */
function Entry({ name, version }) {
  const found = useLoaded((signal) => get(pathOf({ name, version }), { signal }), [name, version]);
  const [asking, setAsking] = useState(false);
  const [error, setError] = useState(/** @type {any} */ (null));
  const entry = found.value;
  if (found.error) return html`<p><a href="/library">‹ ${t("library")}</a></p><${Trouble} error=${found.error} retry=${found.reload} />`;
  if (!entry) return html`<p class="soft">${t("loading")}</p>`;
  const named = reference(entry);
  const drop = async () => {
    setAsking(false);
    try {
      await remove(pathOf(entry));
      go("/library");
    } catch (failed) {
      setError(failed);
    }
  };
  const facts = /** @type {[string, any][]} */ ([
    [t("kind"), t(`type_${entry.type}`)], [t("description"), entry.description], [t("owner"), entry.owner],
    [t("size"), entry.size === null ? "" : bytes(entry.size)], [t("uses"), entry.uses ? html`${count(entry.uses)} (<${Ago} at=${entry.used} />)` : "0"],
    [t("source"), entry.source === "folder" ? t("sourceFolder") : t("sourceServer")],
    [t("requires"), entry.require.length ? entry.require.map((/** @type {string} */ each) => html`<a href=${pathOf({ name: each.split("@")[0], version: each.split("@")[1] })}><bdi>${each}</bdi></a> `) : ""],
    [t("versions"), entry.versions.map((/** @type {string} */ each) => html`<a href=${pathOf({ name, version: each })} aria-current=${each === entry.version ? "page" : undefined}><bdi>${each}</bdi></a> `)],
  ]);
  return html`<p><a href="/library">‹ ${t("library")}</a></p>
    <div class="row"><h1 class="grow"><bdi>${entry.name}</bdi> <span class="soft">${entry.version}</span></h1>
      <a class="button main" href=${`/submit?from=${encodeURIComponent(`library:${named}`)}`}>${t("useInJob")}</a>
      ${entry.mayChange && html`<a class="button" href=${`${pathOf(entry)}?edit=1`}>${t("change")}</a><button class="danger" onClick=${() => setAsking(true)}>${t("remove")}</button>`}</div>
    ${error && html`<${Trouble} error=${error} />`}
    <dl class="facts">${facts.filter(([, value]) => value !== "").map(([word, value]) => html`<dt>${word}</dt><dd>${value}</dd>`)}</dl>
    ${entry.content.length > 0 && html`<h2>${t("whereItLies")}</h2>${entry.content.map((/** @type {any} */ each) => html`<section class="panel content" data-state=${each.state}><p><code>${each.uri}</code></p>
      ${each.state === "here" && html`<p>${t("liesOn", each.host)} <${Copy} text=${each.path} /></p><p class="soft">${bytes(each.bytes)} · ${each.jobs ? t("jobsUseIt", count(each.jobs)) : html`${t("lastUsed")} <${Ago} at=${each.used} />`}</p>`}
      ${each.state !== "here" && html`<p class="soft">${t(each.state === "not-fetched" ? "notFetched" : "notShared", each.host)}</p>`}</section>`)}`}
    <h2>${t("file")}</h2><pre class="text" tabindex="0">${entry.text}</pre>
    <h2>${t("doIt")}</h2><${Copy} text=${`pailot library show ${named} --server ${location.origin}`} />
    ${asking && html`<${Ask} question=${t("confirmForget", named)} onYes=${drop} onNo=${() => setAsking(false)} />`}`;
}

/** A file for the library in the editor: checked at every pause as the server checks it. @param {{name: string, version: string}} props */
function Edit({ name, version }) {
  const host = useRef(/** @type {HTMLElement | null} */ (null));
  const editor = useRef(/** @type {any} */ (null));
  const [text, setText] = useState("");
  const [checked, setChecked] = useState(/** @type {any} */ (null));
  const [error, setError] = useState(/** @type {any} */ (null));
  const [busy, setBusy] = useState(false);
  const saved = useRef(() => {});
  useEffect(() => {
    let here = true;
    const begin = async () => {
      const first = name ? (await get(pathOf({ name, version }))).text : NEW_ENTRY;
      const { openEditor } = await import("../lib/editor.js");
      if (!here || !host.current) return;
      setText(first);
      editor.current = openEditor(host.current, first, { onChange: setText, onSubmit: () => saved.current(), label: t("file") });
    };
    begin().catch(setError);
    return () => void ((here = false), editor.current?.close());
  }, []);
  useEffect(() => {
    if (!text) return;
    const abort = new AbortController();
    const timer = setTimeout(async () => {
      try {
        const found = await (await send("POST", "/library/validate", { text, signal: abort.signal })).json();
        setChecked(found);
        editor.current?.mark(found.problems);
        setError(null);
      } catch (failed) {
        if (!abort.signal.aborted) setError(failed);
      }
    }, PAUSE_MS);
    return () => (clearTimeout(timer), abort.abort());
  }, [text]);
  const problems = checked?.problems ?? [], wrong = !checked || problems.some((/** @type {any} */ each) => each.severity === "error");
  const replaces = name && checked?.name === name && checked?.version === version;
  saved.current = async () => {
    if (wrong || busy) return;
    setBusy(true);
    try {
      const kept = await (await send("PUT", `${pathOf(checked)}${replaces ? "?replace=true" : ""}`, { text: editor.current?.text() ?? text })).json();
      go(pathOf(kept));
    } catch (failed) {
      setError(failed);
    } finally {
      setBusy(false);
    }
  };
  return html`<p><a href=${name ? pathOf({ name, version }) : "/library"}>‹ ${name ? html`<bdi>${name}</bdi>` : t("library")}</a></p>
    <div class="row"><h1 class="grow">${name ? t("change") : t("newEntry")}</h1><button class="main" disabled=${wrong || busy} onClick=${() => saved.current()}>${t("save")} ${checked?.name ? reference(checked) : ""}</button></div>
    ${error && html`<${Trouble} error=${error} />`}
    <div class="split"><div class="editor" ref=${host}></div><div>
      <h2>${t("problems")}</h2>${checked && !problems.length && html`<p>${t("noProblems")}</p>`}
      ${problems.map((/** @type {any} */ each) => html`<div class="problem"><button class="quiet place" onClick=${() => editor.current?.show(each)}>${each.line}:${each.column}</button>
        <span class=${each.severity}>${each.message}</span>${each.hint ? html`<button onClick=${() => editor.current?.fix(each)}>${t("fix")}</button>` : html`<span></span>`}</div>`)}
      <p class="soft">${t("entryHint")}</p></div></div>`;
}
