import { el, note, show } from "./dom.js";
export function open(place) { show(place, el("h1", {}, "Soon"), note("x")); }
