// Lines over time as inline SVG. A chart is drawn anew with every frame from the columns of the past; with the pointer
// or the arrow keys a moment is chosen, and the key shows its values. The table below it says the same.

const SVG = "http://www.w3.org/2000/svg";
const LEFT = 56, RIGHT = 10, TOP = 8, BOTTOM = 20;
const TABLE_ROWS = 20;

export function node(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === false || value === undefined) continue;
    made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined).map((child) => (child instanceof Node ? child : String(child))));
  return made;
}

function shape(tag, attributes, text) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

export function clock(seconds) {
  return new Date(seconds * 1000).toLocaleTimeString([], { hour12: false });
}

function niceStep(span, parts, steps) {
  const wanted = span / parts;
  if (steps) return steps.find((step) => step >= wanted) ?? steps[steps.length - 1];
  const power = 10 ** Math.floor(Math.log10(wanted));
  return [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= wanted);
}

export class Chart {
  // lines: [{name, column, kind}]; kind is a class of the style sheet. say: a value as people read it.
  constructor(figure, { title, lines, say, whole = false, steps = false, marks = null, note = "" }) {
    Object.assign(this, { figure, title, lines, say, whole, steps, marks, note, past: null, chosen: null });
    const id = `${figure.id}-title`;
    this.keys = lines.map((line) => node("span", { class: `key ${line.kind}` }, line.name));
    this.when = node("span", { class: "key-time quiet", "aria-live": "polite" });
    const extra = marks ? [node("span", { class: "key move" }, marks)] : [];
    this.caption = node("figcaption", {}, node("h2", { id }, title), ...this.keys, ...extra, this.when);
    this.svg = shape("svg", { class: "chart", role: "img", tabindex: "0", "aria-labelledby": id });
    this.table = node("table", { "aria-labelledby": id });
    this.details = node("details", {}, node("summary", {}, "As a table"), node("div", { class: "scroll" }, this.table));
    this.svg.append(shape("text", { x: "50%", y: "50%", "text-anchor": "middle" }, "no figures yet"));
    figure.append(this.caption, this.svg, this.details);
    this.svg.addEventListener("pointermove", (event) => this.point(event));
    this.svg.addEventListener("pointerleave", () => this.choose(null));
    this.svg.addEventListener("blur", () => this.choose(null));
    this.svg.addEventListener("keydown", (event) => this.step(event));
    this.details.addEventListener("toggle", () => this.fillTable());
    new ResizeObserver(() => this.draw(this.past)).observe(this.svg);
  }

  point(event) {
    if (!this.past?.at.length) return;
    const share = (event.clientX - this.svg.getBoundingClientRect().left - LEFT) / Math.max(1, this.width - LEFT - RIGHT);
    const at = this.from + share * (this.to - this.from);
    let best = 0;
    this.past.at.forEach((time, place) => { if (Math.abs(time - at) < Math.abs(this.past.at[best] - at)) best = place; });
    this.choose(this.past.at[best]);
  }

  step(event) {
    const by = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity }[event.key];
    if (event.key === "Escape") this.choose(null);
    if (!by || !this.past?.at.length) return;
    event.preventDefault();
    const last = this.past.at.length - 1;
    const now = this.chosen === null ? last : this.past.at.indexOf(this.chosen);
    this.choose(this.past.at[Math.min(last, Math.max(0, now + by))]);
  }

  choose(at) {
    this.chosen = at;
    this.draw(this.past);
  }

  draw(past) {
    this.past = past;
    if (!past || !past.at.length) return;
    const { width, height } = this.svg.getBoundingClientRect();
    if (!width || !height) return;
    [this.width, this.height] = [width, height];
    this.to = past.at[past.at.length - 1];
    this.from = Math.min(past.at[0], this.to - 60);
    const values = this.lines.flatMap((line) => past[line.column]).filter((value) => value !== null);
    const top = Math.max(this.whole ? 2 : 0, ...values) || 1;
    const unit = this.bytes ? 1024 ** Math.floor(Math.log(Math.max(top, 1)) / Math.log(1024)) : 1;
    const stepUp = this.whole ? Math.max(1, Math.ceil(top / 4)) : niceStep(top / unit, 4) * unit;
    const high = Math.ceil(top / stepUp) * stepUp;
    this.x = (at) => LEFT + ((at - this.from) / (this.to - this.from)) * (width - LEFT - RIGHT);
    this.y = (value) => height - BOTTOM - (value / high) * (height - TOP - BOTTOM);
    this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.svg.replaceChildren(...this.grid(high, stepUp), ...this.moves(past), ...this.lines.map((line) => this.line(past, line)), ...this.cursor());
    this.fillKeys(past);
    this.fillTable();
  }

  grid(high, stepUp) {
    const made = [];
    for (let value = 0; value <= high * 1.0001; value += stepUp) {
      const y = this.y(value);
      made.push(shape("line", { class: "grid", x1: LEFT, x2: this.width - RIGHT, y1: y, y2: y }));
      made.push(shape("text", { x: LEFT - 6, y: y + 4, "text-anchor": "end" }, this.say(value)));
    }
    const stepOn = niceStep(this.to - this.from, Math.max(2, Math.floor(this.width / 110)), [10, 15, 30, 60, 120, 300]);
    for (let at = Math.ceil(this.from / stepOn) * stepOn; at <= this.to; at += stepOn) {
      const x = this.x(at);
      made.push(shape("line", { class: "axis", x1: x, x2: x, y1: this.height - BOTTOM, y2: this.height - BOTTOM + 4 }));
      if (x > LEFT + 12 && x < this.width - 26) made.push(shape("text", { x, y: this.height - 4, "text-anchor": "middle" }, clock(at)));
    }
    return made;
  }

  moves(past) {
    if (!this.marks) return [];
    const made = [];
    for (let place = 1; place < past.at.length; place += 1) {
      if (past.moves[place] > past.moves[place - 1]) {
        const x = this.x(past.at[place]);
        made.push(shape("line", { class: "mark", x1: x, x2: x, y1: this.height - BOTTOM - 9, y2: this.height - BOTTOM }));
      }
    }
    return made;
  }

  line(past, { column, kind }) {
    let path = "", open = false, before = null;
    past.at.forEach((at, place) => {
      const value = past[column][place];
      if (value === null) { open = false; return; }
      if (place && at - past.at[place - 1] > 15) open = false;
      const x = this.x(at).toFixed(1), y = this.y(value).toFixed(1);
      path += !open ? `M${x} ${y}` : this.steps && y !== before ? `H${x}V${y}` : `L${x} ${y}`;
      [open, before] = [true, y];
    });
    return shape("path", { class: kind, d: path || "M0 0" });
  }

  cursor() {
    if (this.chosen === null || this.chosen < this.from) return [];
    const x = this.x(this.chosen);
    return [shape("line", { class: "cursor", x1: x, x2: x, y1: TOP, y2: this.height - BOTTOM })];
  }

  fillKeys(past) {
    const place = this.chosen === null ? past.at.length - 1 : past.at.indexOf(this.chosen);
    this.lines.forEach((line, number) => {
      const value = place < 0 ? null : past[line.column][place];
      this.keys[number].textContent = `${line.name} ${value === null ? "–" : this.say(value)}`;
    });
    const text = this.chosen === null ? this.note : `at ${clock(this.chosen)}`;
    if (this.when.textContent !== text) this.when.textContent = text;
  }

  fillTable() {
    if (!this.details.open || !this.past) return;
    const { at } = this.past, every = Math.max(1, Math.ceil(at.length / TABLE_ROWS)), rows = [];
    for (let place = at.length - 1; place >= 0; place -= every) {
      const cells = this.lines.map((line) => {
        const value = this.past[line.column][place];
        return node("td", { class: "n" }, value === null ? "–" : this.say(value));
      });
      rows.push(node("tr", {}, node("td", {}, clock(at[place])), ...cells));
    }
    const head = node("tr", {}, node("th", { scope: "col" }, "time"), ...this.lines.map((line) => node("th", { scope: "col", class: "n" }, line.name)));
    this.table.replaceChildren(node("thead", {}, head), node("tbody", {}, ...rows));
  }
}
