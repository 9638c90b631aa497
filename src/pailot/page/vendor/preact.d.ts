export { h, render, Component, Fragment, createContext } from "preact";
export { useState, useEffect, useLayoutEffect, useRef, useMemo, useCallback, useContext, useReducer } from "preact/hooks";
export const html: (strings: TemplateStringsArray, ...values: any[]) => any;
