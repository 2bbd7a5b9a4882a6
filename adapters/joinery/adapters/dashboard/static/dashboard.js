// The page: one frame a second from /events. Every text is set as text, never as HTML.

import { Chart, clock, node } from "./charts.js";

const KEPT = 600, SILENT_S = 5;
const $ = (id) => document.getElementById(id);
const BAD = new Set(["WorkerLost", "DataLost", "StateLost", "CheckpointDamaged", "StateTooLarge", "Note"]);
const ROLES = [
  ["supplier", "supplier (overloaded)"], ["consumer", "consumer (has room)"], ["neutral", "neutral"],
  ["new", "new"], ["gone", "gone"],
];

// --- as people read numbers

const whole = (value) => Math.round(value).toLocaleString("en");
const short = (value) => (value >= 1e9 ? `${+(value / 1e9).toFixed(2)} G` : value >= 1e6 ? `${+(value / 1e6).toFixed(2)} M` : value >= 1e4 ? `${+(value / 1e3).toFixed(1)} k` : value < 10 ? String(+value.toFixed(1)) : whole(value));
function size(value) {
  let unit = 0;
  while (value >= 1024 && unit < 4) { value /= 1024; unit += 1; }
  return `${+value.toFixed(value < 10 && unit ? 1 : 0)} ${["B", "KiB", "MiB", "GiB", "TiB"][unit]}`;
}
function duration(seconds) {
  if (seconds === 0) return "0 ms";
  if (Math.abs(seconds) < 0.01) return `${(seconds * 1e3).toFixed(1)} ms`;
  if (Math.abs(seconds) < 0.9995) return `${Math.round(seconds * 1e3)} ms`;
  if (Math.abs(seconds) < 59.95) return `${seconds.toFixed(1)} s`;
  if (Math.abs(seconds) < 3600) return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
  if (Math.abs(seconds) < 172800) return `${(seconds / 3600).toFixed(1)} h`;
  return `${Math.round(seconds / 86400).toLocaleString("en")} d`;
}
const maybe = (value, say) => (value === null || value === undefined ? "–" : say(value));
const counted = (value, noun) => `${whole(value)} ${noun}${value === 1 ? "" : "s"}`;
const ordinal = (name) => { const found = /(\d+)$/.exec(name); return found ? Number(found[1]) : 0; };
const brief = (name) => /worker-\d+$/.exec(name)?.[0] ?? name;  // in a cluster it begins with the query's name
const colour = (name) => `w${ordinal(name) % 8}`;

// --- charts

const charts = [
  new Chart($("chart-rate"), { title: "Rate", say: short, lines: [
    { name: "rows/s", column: "rows", kind: "one" }, { name: "results/s", column: "results", kind: "two dashed" }] }),
  new Chart($("chart-delay"), { title: "Delay of results", say: duration, note: "arrival to result", lines: [
    { name: "p50", column: "p50", kind: "one" }, { name: "p99", column: "p99", kind: "two dashed" }] }),
  new Chart($("chart-degree"), { title: "Workers", say: (value) => String(Math.round(value)), whole: true, steps: true, marks: "move", lines: [
    { name: "degree", column: "degree", kind: "one" }, { name: "N_sup", column: "suppliers", kind: "two dashed" },
    { name: "N_con", column: "consumers", kind: "three dotted" }] }),
  new Chart($("chart-state"), { title: "State", say: size, lines: [
    { name: "windows", column: "window", kind: "one" }, { name: "waiting rows", column: "unsent", kind: "two dashed" }] }),
];
charts[3].bytes = true;

// --- parts of the page

function table(place, heads, rows, empty) {
  const cells = heads.map(([name, kind]) => node("th", { scope: "col", class: kind || null }, name));
  const none = node("tr", {}, node("td", { colspan: heads.length, class: "quiet" }, empty));
  place.replaceChildren(node("thead", {}, node("tr", {}, ...cells)), node("tbody", {}, ...(rows.length ? rows : [none])));
}

function setText(place, text) {  // a live region speaks only when it changes
  if (place.textContent !== text) place.textContent = text;
}

function pairs(place, entries) {
  place.replaceChildren(...entries.map(([name, value, more]) => node("div", {}, node("dt", {}, name),
    node("dd", {}, value, more ? node("small", {}, ` ${more}`) : null))));
}

function tiles(frame, last) {
  pairs($("tiles"), [
    ["Rows per second", maybe(last.rows, short)],
    ["Results per second", maybe(last.results, short)],
    ["Results committed", short(frame.results)],
    ["Delay p99", maybe(last.p99, duration), last.p50 === null ? "" : `p50 ${duration(last.p50)}`],
    ["Workers", String(frame.degree), `of ${frame.least} to ${frame.most}`],
    ["Records not committed", whole(frame.uncommitted)],
  ]);
}

function control(frame) {
  const bound = frame.beta * frame.consumers, grows = frame.suppliers > bound;
  $("rule").replaceChildren("Now: ", node("b", {}, `N_sup ${frame.suppliers} ${grows ? ">" : "≤"} β ${frame.beta} × N_con ${frame.consumers} = ${+bound.toFixed(2)}`),
    grows ? ": the rule asks for more workers." : ": the rule asks for no more workers.");
  const by = frame.place === "gateway" ? "The operator has told no decision yet." : "No decision yet.";
  const hand = frame.mode === "Auto" ? by : `scaling.mode is ${frame.mode}: the load decides nothing.`;
  setText($("decision"), frame.decision ? `Last decision: ${frame.decision}.` : hand);
  setText($("change"), frame.change ? `Last change, ${clock(frame.change.at)}: ${frame.change.text}.` : "");
}

function workers(frame) {
  const rows = frame.workers.map((one) => {
    const role = !one.up ? "gone" : one.role || "new";
    const fill = node("div", { class: "fill" }), bar = node("div", { class: "bar", "aria-hidden": "true" }, fill);
    fill.style.width = `${Math.min(100, (one.occupancy ?? 0) * 100)}%`;
    for (const at of [frame.thCon, frame.thSup]) {
      const tick = node("div", { class: "tick" });
      tick.style.left = `${Math.min(99, at * 100)}%`;
      bar.append(tick);
    }
    return node("tr", { class: role, "data-worker": one.name }, node("td", { title: one.name }, brief(one.name)), node("td", { class: "role" }, role), node("td", {}, bar),
      node("td", { class: "n" }, maybe(one.occupancy, (value) => value.toFixed(2))),
      node("td", { class: "n" }, maybe(one.busy, (value) => `${Math.round(value * 100)} %`)),
      node("td", { class: "n" }, maybe(one.bytes, size)), node("td", { class: "n" }, one.groups));
  });
  table($("workers"), [["worker"], ["role"], ["buffer"], ["f", "n"], ["busy", "n"], ["window", "n"], ["groups", "n"]], rows, "no worker yet");
}

function groups(frame) {
  const moving = new Map(frame.underWay.map((move) => [move.group, move]));
  const place = $("groups"), small = frame.owners.length > 240;
  place.classList.toggle("small", small);
  while (place.children.length > frame.owners.length) place.lastChild.remove();
  while (place.children.length < frame.owners.length) place.append(node("div", {}, String(place.children.length), node("small")));
  frame.owners.forEach((owner, group) => {
    const cell = place.children[group], name = owner < 0 ? null : frame.workers[owner].name, move = moving.get(group);
    const kind = `${name === null ? "none" : colour(name)}${move ? " moving" : ""}`;
    if (cell.className !== kind) cell.className = kind;
    setText(cell.lastChild, name === null ? "–" : `w${ordinal(name)}`);
    cell.title = `group ${group}: ${name ?? "no owner has reported it"}, ${size(frame.sizes[group])}${move ? `, on its way to ${move.to}` : ""}`;
  });
  const own = (number) => frame.owners.flatMap((owner, group) => (owner === number ? [group] : []));
  $("owners").replaceChildren(...frame.workers.map((one) => node("span", {}, node("i", { class: colour(one.name) }), `${brief(one.name)} (${one.groups})`)));
  const rows = frame.workers.map((one, number) => node("tr", {}, node("td", {}, brief(one.name)), node("td", { class: "wrap" }, own(number).join(", ") || "–"),
    node("td", { class: "n" }, size(own(number).reduce((sum, group) => sum + frame.sizes[group], 0)))));
  table($("groups-table"), [["worker"], ["groups"], ["window", "n"]], rows, "no worker yet");
}

function moves(frame) {
  const newest = (one, two) => two.at - one.at;
  const all = [...[...frame.underWay].sort(newest), ...[...frame.moves].reverse()].slice(0, 12);
  const done = frame.moves.map((one) => one.pause).sort((a, b) => a - b);
  const pause = done.length ? `; pauses of the last ${done.length}: median ${duration(done[Math.floor((done.length - 1) / 2)])}, longest ${duration(done[done.length - 1])}` : "";
  setText($("moves-sum"), `${counted(frame.movesDone, "group")} moved, ${frame.underWay.length} under way${pause}.`);
  const rows = all.map((one) => node("tr", { "data-group": one.group }, node("td", {}, clock(one.at)), node("td", { class: "n" }, one.group), node("td", { title: `${one.from} → ${one.to}` }, `${brief(one.from)} → ${brief(one.to)}`),
    node("td", { class: "n" }, maybe(one.pause, duration)), node("td", { class: "n" }, size(one.bytes)),
    node("td", {}, one.pause === null ? "under way" : one.planned ? "planned" : one.from === one.to ? "its worker was lost and came back" : "its worker was lost")));
  table($("moves"), [["time"], ["group", "n"], ["from → to"], ["pause", "n"], ["window", "n"], ["why"]], rows, "none yet");
}

function streams(frame) {
  const rows = frame.streams.map((one) => node("tr", {}, node("td", { class: "name", title: one.name }, one.name), node("td", {}, one.window),
    node("td", { class: "n" }, whole(one.rows)), node("td", { class: "n" }, whole(one.late)),
    node("td", {}, one.ended ? "ended" : maybe(one.watermark, (at) => (at > 1e8 ? new Date(at * 1000).toISOString().replace("T", " ").slice(0, 19) : `${at.toFixed(1)} s`))),
    node("td", { class: "n", title: "clock minus watermark; none if the rows have a time of their own" }, maybe(one.lag, (lag) => (Math.abs(lag) > 3e7 ? "–" : duration(lag)))), node("td", { class: "n" }, maybe(one.behind, duration))));
  table($("streams"), [["stream"], ["window"], ["rows", "n"], ["late", "n"], ["watermark"], ["lag", "n"], ["behind", "n"]], rows, "none");
}

const told = new Set();
function events(frame) {  // only what is new is added: a screen reader says it once
  for (const one of frame.events) {
    const key = `${one.at} ${one.text}`;
    if (told.has(key)) continue;
    told.add(key);
    const at = new Date(one.at * 1000).toISOString();
    const item = node("li", {}, node("time", { datetime: at }, clock(one.at)), node("span", { class: BAD.has(one.kind) ? "bad" : null }, one.text));
    $("events").insertBefore(item, [...$("events").children].find((older) => older.firstChild.dateTime <= at) ?? null);  // gateway and runner tell apart
  }
  while ($("events").children.length > 50) $("events").lastChild.remove();
}

function log(frame) {
  const entries = [
    ["records", whole(frame.records)], ["not committed", whole(frame.uncommitted)],
    ["log", frame.durability === "wal" ? "on disk (wal)" : "in memory"],
    ["last checkpoint", frame.checkpointAge === null ? "none yet" : `${duration(Math.max(0, frame.checkpointAge))} ago`],
    ["Redis", maybe(frame.stored, size)], ["kept for replay", size(frame.replay)], ["most rows that waited", size(frame.unsentPeak)],
    ["late rows", whole(frame.late)], ["refused batches", whole(frame.rejected)],
    ["slot epoch t_d", duration(frame.epoch)], ["map version", whole(frame.mapVersion)],
  ];
  $("log").replaceChildren(...entries.flatMap(([name, value]) => [node("dt", {}, name), node("dd", {}, value)]));
}

function others(frame) {
  const place = $("others");
  place.hidden = frame.others.length === 0;
  place.replaceChildren(...frame.others.map((one) => node("a", { href: /^http:\/\//.test(one.address) ? one.address : "#" }, one.name)));
}

function starting() {  // nothing is known yet: the page says so, instead of being empty
  const none = ["Rows per second", "Results per second", "Results committed", "Delay p99", "Workers", "Records not committed"];
  pairs($("tiles"), none.map((name) => [name, "–"]));
  setText($("decision"), "The processes are starting. The first figures come when a worker is there; the first time compiling takes some seconds more.");
  table($("workers"), [["worker"], ["role"], ["buffer"], ["f", "n"], ["busy", "n"], ["window", "n"], ["groups", "n"]], [], "no worker yet");
  table($("moves"), [["time"], ["group", "n"], ["from → to"], ["pause", "n"], ["window", "n"], ["why"]], [], "none yet");
  table($("streams"), [["stream"], ["window"], ["rows", "n"], ["late", "n"], ["watermark"]], [], "none yet");
  setText($("owners"), "no owner yet");
}

// --- frames

let past = null, heard = 0, frame = null;

function show(now) {
  frame = now;
  heard = performance.now();
  document.title = `${frame.name} – Joinery`;
  setText($("query"), frame.name);
  others(frame);
  events(frame);
  mood();
  if (frame.state === "starting") {
    starting();
    return;
  }
  for (const draw of [control, workers, groups, moves, streams, log]) draw(frame);
  tiles(frame, Object.fromEntries(Object.keys(past).map((name) => [name, past[name].at(-1) ?? null])));
  for (const chart of charts) chart.draw(past);
}

function append(point) {
  Object.values(past).forEach((column, number) => {
    column.push(point[number]);
    if (column.length > KEPT) column.shift();
  });
}

function mood(lost = "") {
  const age = frame?.seen ? frame.at - frame.seen : 0;
  const silent = frame && frame.state === "running" && age > SILENT_S;
  const text = lost && frame?.state !== "ended" ? lost : silent ? "silent" : frame?.state ?? "connecting";
  $("state").className = `state ${text === "running" ? "running" : lost || silent ? "lost" : ""}`;
  setText($("state"), text);
  const alert = lost && frame?.state !== "ended" ? "No connection: the run was stopped, or cannot be reached. This page goes on when it is there again; the figures are the last ones."
    : silent ? `The gateway has said nothing for ${duration(age)}; the figures are the last ones.` : "";
  setText($("alert"), alert);
  $("alert").hidden = alert === "";
}

$("roles").replaceChildren(...ROLES.map(([role, text]) => node("span", {}, node("i", { class: role }), text)));
const source = new EventSource("events");
source.addEventListener("past", (event) => {
  const told = JSON.parse(event.data);
  past = told.past;
  if (told.frame) show(told.frame);
});
source.addEventListener("frame", (event) => {
  const now = JSON.parse(event.data);
  if (now.point) append(now.point);
  show(now);
});
source.addEventListener("error", () => {
  if (frame?.state === "ended") source.close();
  mood("not connected");
});
setInterval(() => { if (heard && performance.now() - heard > SILENT_S * 1000 && frame.state !== "ended") mood("not connected"); }, 1000);
