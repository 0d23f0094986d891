import { h } from "./dom.js";
document.getElementById("main").replaceChildren(h("h1", {}, "dsh"));
