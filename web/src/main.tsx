import { render } from "preact";

import "uplot/dist/uPlot.min.css";

import "./styles/theme.css";
import "./styles/frame.css";
import "./styles/tables.css";
import "./styles/views.css";
import "./styles/graph.css";

import { App } from "./app";
import { watch_server } from "./model/server";

watch_server();
render(<App />, document.getElementById("app")!);
