export { EditorState, Compartment } from "@codemirror/state";
export { EditorView, keymap, lineNumbers, highlightActiveLine, highlightActiveLineGutter, drawSelection, hoverTooltip } from "@codemirror/view";
export { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
export { yaml } from "@codemirror/lang-yaml";
export { HighlightStyle, syntaxHighlighting, indentOnInput, bracketMatching, indentUnit } from "@codemirror/language";
export { tags } from "@lezer/highlight";
export { lintGutter, setDiagnostics, lintKeymap, forceLinting } from "@codemirror/lint";
export { autocompletion, completionKeymap } from "@codemirror/autocomplete";
export { search, searchKeymap } from "@codemirror/search";
