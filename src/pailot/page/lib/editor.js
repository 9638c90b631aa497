// @ts-check
// The editor of job files: CodeMirror in a shadow root, where its style sheets are allowed by a strict policy.

import {
  EditorState, EditorView, HighlightStyle, bracketMatching, defaultKeymap, drawSelection, highlightActiveLine, history,
  historyKeymap, indentOnInput, indentUnit, indentWithTab, keymap, lineNumbers, lintGutter, lintKeymap, search, searchKeymap,
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
  ".cm-tooltip, .cm-panels": { backgroundColor: "var(--panel)", color: "var(--ink)", border: "1px solid var(--line)" },
});

/** @typedef {{line: number, column: number, endLine: number, endColumn: number, severity: string, message: string, code: string, hint: string | null}} Problem */

/**
 * @param {HTMLElement} host
 * @param {string} text
 * @param {{onChange: (text: string) => void, onSubmit: () => void, label: string}} told
 */
export function openEditor(host, text, { onChange, onSubmit, label }) {
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
        keymap.of([...lintKeymap, ...defaultKeymap, ...historyKeymap, ...searchKeymap, indentWithTab]),
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
