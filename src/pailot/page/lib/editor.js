// @ts-check
// The editor of job files: CodeMirror in a shadow root, where its style sheets are allowed by a strict policy.

import { about, offers } from "./schema.js";
import {
  EditorState, EditorView, HighlightStyle, autocompletion, bracketMatching, completionKeymap, defaultKeymap, drawSelection, highlightActiveLine, history,
  historyKeymap, hoverTooltip, indentOnInput, indentUnit, indentWithTab, keymap, lineNumbers, lintGutter, lintKeymap, search, searchKeymap,
  setDiagnostics, syntaxHighlighting, tags, yaml,
} from "../vendor/editor.js";

const COLOURS = HighlightStyle.define([
  { tag: tags.propertyName, color: "var(--accent)" },
  { tag: tags.definition(tags.propertyName), color: "var(--accent)" },
  { tag: tags.string, color: "var(--good)" },
  { tag: tags.number, color: "var(--run)" },
  { tag: tags.comment, color: "var(--soft)", fontStyle: "italic" },
]);
const LOOK = EditorView.theme({
  "&": { height: "100%", color: "var(--ink)", backgroundColor: "var(--panel)", fontSize: "13px" },
  ".cm-scroller": { fontFamily: "ui-monospace, Menlo, 'DejaVu Sans Mono', monospace", lineHeight: "1.5" },
  ".cm-gutters": { backgroundColor: "var(--panel)", color: "var(--soft)", border: "none" },
  ".cm-activeLine": { backgroundColor: "color-mix(in srgb, var(--faint) 45%, transparent)" },
  ".cm-cursor": { borderLeftColor: "var(--ink)" },
  "&.cm-focused .cm-selectionBackground, .cm-selectionBackground": { backgroundColor: "var(--faint)" },
  ".cm-tooltip-autocomplete ul li[aria-selected]": { backgroundColor: "var(--tint)", color: "var(--accent)" },
  ".cm-completionDetail": { color: "var(--soft)", fontStyle: "normal", marginLeft: "12px" },
  ".about": { padding: "6px 10px", maxWidth: "420px", fontFamily: "system-ui, sans-serif" }, ".about b": { display: "block" }, ".about i": { color: "var(--soft)", fontStyle: "normal" },
  ".cm-tooltip, .cm-panels": { backgroundColor: "var(--panel)", color: "var(--ink)", border: "1px solid var(--line)" },
});

/** Completion and hover, from the schema of job files. @param {() => any} schema */
function known(schema) {
  const place = (/** @type {EditorState} */ state, /** @type {number} */ at) => {
    const line = state.doc.lineAt(at);
    return { lines: state.doc.toString().split("\n"), row: line.number - 1, column: at - line.from, from: line.from };
  };
  return [
    autocompletion({
      icons: false,
      override: [(context) => {
        const { lines, row, column, from } = place(context.state, context.pos);
        const found = schema() && offers(schema(), lines, row, column);
        if (!found || (!context.explicit && found.from === column)) return null;
        return { from: from + found.from, validFor: /^[\w-]*$/, options: found.offers.map((/** @type {import("./schema.js").Offer} */ each) => ({ label: each.label, detail: each.detail.slice(0, 60), apply: each.value ? each.label : `${each.label}: ` })) };
      }],
    }),
    hoverTooltip((view, at) => {
      const { lines, row, column, from } = place(view.state, at);
      const found = schema() && about(schema(), lines, row, column);
      if (!found) return null;
      return {
        pos: from + found.from, end: from + found.to, above: true,
        create() {
          const dom = document.createElement("div"), name = document.createElement("b"), kinds = document.createElement("i");
          dom.className = "about";
          name.textContent = found.name;
          kinds.textContent = found.kinds.join(" | ");
          dom.append(name, document.createTextNode(`${found.text} `), kinds);
          return { dom };
        },
      };
    }),
  ];
}

/** @typedef {{line: number, column: number, endLine: number, endColumn: number, severity: string, message: string, code: string, hint: string | null}} Problem */

/**
 * @param {HTMLElement} host
 * @param {string} text
 * @param {{onChange: (text: string) => void, onSubmit: () => void, label: string, schema?: () => any}} told
 */
export function openEditor(host, text, { onChange, onSubmit, label, schema = () => null }) {
  const root = host.shadowRoot ?? host.attachShadow({ mode: "open" });
  root.replaceChildren();
  const view = new EditorView({
    root,
    parent: root,
    state: EditorState.create({
      doc: text,
      extensions: [
        keymap.of([{ key: "Mod-Enter", run: () => (onSubmit(), true) }]),
        lineNumbers(), history(), drawSelection(), indentOnInput(), bracketMatching(), highlightActiveLine(), lintGutter(), search(),
        indentUnit.of("  "), yaml(), syntaxHighlighting(COLOURS), LOOK,
        known(schema), keymap.of([...completionKeymap, ...lintKeymap, ...defaultKeymap, ...historyKeymap, ...searchKeymap, indentWithTab]),
        matchMedia("(max-width: 760px)").matches ? EditorView.lineWrapping : [],
        EditorView.contentAttributes.of({ "aria-label": label }),
        EditorView.updateListener.of((update) => update.docChanged && onChange(update.state.doc.toString())),
      ],
    }),
  });
  const place = (/** @type {number} */ line, /** @type {number} */ column) => {
    const found = view.state.doc.line(Math.min(Math.max(1, line), view.state.doc.lines));
    return Math.min(found.to, found.from + Math.max(0, column - 1));
  };
  return {
    text: () => view.state.doc.toString(),
    /** @param {Problem[]} problems */
    mark(problems) {
      const found = problems.map((each) => {
        const from = place(each.line, each.column), to = Math.max(from, place(each.endLine, each.endColumn));
        return { from, to, severity: /** @type {"error" | "warning"} */ (each.severity === "error" ? "error" : "warning"), message: each.message };
      });
      view.dispatch(setDiagnostics(view.state, found.sort((one, other) => one.from - other.from)));
    },
    /** @param {Problem} problem */
    show(problem) {
      const at = place(problem.line, problem.column);
      view.dispatch({ selection: { anchor: at }, effects: EditorView.scrollIntoView(at, { y: "center" }) });
      view.focus();
    },
    /** Put the word that was meant in place of the wrong one. @param {Problem} problem */
    fix(problem) {
      const from = place(problem.line, problem.column), to = place(problem.endLine, problem.endColumn);
      view.dispatch({ changes: { from, to, insert: problem.hint ?? "" } });
      view.focus();
    },
    close: () => view.destroy(),
  };
}
