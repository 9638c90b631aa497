import { h, render, Component, Fragment, createContext } from "preact";
import { useState, useEffect, useLayoutEffect, useRef, useMemo, useCallback, useContext, useReducer } from "preact/hooks";
import htm from "htm";

const html = htm.bind(h);
export { h, html, render, Component, Fragment, createContext };
export { useState, useEffect, useLayoutEffect, useRef, useMemo, useCallback, useContext, useReducer };
