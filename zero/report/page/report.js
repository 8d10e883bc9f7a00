// The page: table, controls and legend around the charts. All text of runs is set as text, never as HTML.

const data = JSON.parse(document.getElementById("data").textContent), runs = data.runs;
const dark = window.matchMedia("(prefers-color-scheme: dark)");
const memory = "zero_report " + location.pathname;
const view = {axis: "step", logx: false, logy: false, smooth: 0, hidden: [], open: [], sort: null, down: false, ...remembered()};

function element(home, tag, words) {
  const made = document.createElement(tag);
  if (words !== undefined) made.textContent = words;
  home.append(made);
  return made;
}

let colours = {};
function colour(name) {
  return colours[name] ??= getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function paint() {
  colours = {};
  const hues = [214, 24, 150, 340, 268, 190, 46, 310];
  runs.forEach((run, k) => {
    const hue = k < hues.length ? hues[k] : (k * 137.5) % 360;
    run.colour = `hsl(${hue} ${dark.matches ? "75% 66%" : "70% 44%"})`;
    run.dash = [[], [6, 3], [2, 3]][Math.floor(k / hues.length) % 3];
  });
}

/// What the reader chose, also after a page of a running run has loaded itself again.
function remembered() {
  try { return JSON.parse(sessionStorage.getItem(memory)) || {}; } catch { return {}; }
}
function remember() {
  view.hidden = runs.filter((run) => run.hidden).map((run) => run.path);
  try { sessionStorage.setItem(memory, JSON.stringify({...view, scroll: window.scrollY})); } catch { /* a browser without storage */ }
}

const columns = [
  {name: "run", words: true, of: (run) => run.name},
  {name: "state", words: true, of: (run) => run.state},
  {name: "restarts", of: (run) => run.restarts, hide: runs.every((run) => !run.restarts)},
  {name: "steps", of: (run) => run.steps, show: (run) => run.steps.toLocaleString("en") + (run.planned && run.planned !== run.steps ? " / " + run.planned.toLocaleString("en") : "")},
  {name: "final loss", of: (run) => run.final_loss, precise: true},
  {name: "best loss", of: (run) => run.best_loss, precise: true},
  {name: "validation", of: (run) => run.validation_loss, precise: true, hide: runs.every((run) => !run.series.validation_loss)},
  {name: "time", of: (run) => run.seconds, kind: "seconds"},
  {name: "tokens", of: (run) => run.tokens, kind: "count"},
  {name: "tokens/s", of: (run) => run.rate},
  {name: "peak memory", of: (run) => run.peak_bytes, kind: "bytes"},
  {name: "ranks", of: (run) => run.ranks, hide: new Set(runs.map((run) => run.ranks)).size < 2},
  ...data.settings.map((name, k) => ({name, words: true, of: (run) => run.settings[k]})),
].filter((column) => !column.hide);

function cell(column, run) {
  const value = column.of(run);
  if (column.show) return column.show(run);
  if (column.words) return value ?? "–";
  return column.precise && typeof value === "number" ? Number(value.toPrecision(5)).toString() : shown(value, column.kind);
}

function before(a, b) {
  if (a === b) return 0;
  if (a === null || a === undefined) return 1;
  if (b === null || b === undefined) return -1;
  const [x, y] = [Number(a), Number(b)];
  return a !== "" && b !== "" && !isNaN(x) && !isNaN(y) ? x - y : String(a).localeCompare(String(b));
}

function table() {
  const home = document.getElementById("runs"), head = element(home, "thead").insertRow(), body = element(home, "tbody");
  const fill = () => {
    const by = columns.find((column) => column.name === view.sort);
    const order = by ? [...runs].sort((a, b) => before(by.of(a), by.of(b)) * (view.down ? -1 : 1)) : runs;
    [...head.children].forEach((th, k) => {
      th.classList.toggle("sorted", columns[k] === by);
      th.setAttribute("aria-sort", columns[k] !== by ? "none" : view.down ? "descending" : "ascending");
    });
    body.replaceChildren();
    for (const run of order) {
      const row = body.insertRow();
      for (const column of columns) {
        const td = element(row, "td", cell(column, run));
        if (column.words) td.className = "words", td.title = td.textContent;
        if (column.name === "state" && run.state === "running") td.classList.add("running");
        if (column.precise && run.bad.includes(column.name)) td.textContent = "not finite", td.classList.add("bad");
      }
      const swatch = document.createElement("span");
      swatch.className = "swatch";
      swatch.style.background = run.colour;
      row.cells[0].prepend(swatch);
      row.cells[0].title = run.path;
    }
  };
  for (const column of columns) {
    const th = element(head, "th", column.name);
    if (column.words) th.className = "words";
    th.title = column.name === "tokens/s" ? "median of the logged steps; click to sort" : column.name + "; click to sort";
    th.onclick = () => { view.down = view.sort === column.name && !view.down; view.sort = column.name; fill(); remember(); };
  }
  fill();
  return fill;
}

function legend(changed) {
  const home = document.getElementById("legend");
  home.replaceChildren();
  const button = (words, pressed, act) => {
    const made = element(home, "button");
    made.type = "button";
    made.onclick = act;
    if (pressed !== null) made.setAttribute("aria-pressed", pressed);
    made.append(words);
    return made;
  };
  if (runs.length < 2) return;
  for (const run of runs) {
    const made = button(run.name, !run.hidden, () => { run.hidden = !run.hidden; legend(changed); changed(); }), swatch = document.createElement("span");
    made.title = run.path;
    swatch.className = "swatch";
    swatch.style.background = run.colour;
    made.prepend(swatch);
  }
  const all = (hidden) => () => { runs.forEach((run) => { run.hidden = hidden; }); legend(changed); changed(); };
  button("all", null, all(false));
  button("none", null, all(true));
}

function controls(changed) {
  const axes = {step: "step", tokens: "tokens", seconds: "time"}, home = document.getElementById("axis");
  for (const [axis, words] of Object.entries(axes)) {
    const label = element(home, "label"), input = element(label, "input");
    Object.assign(input, {type: "radio", name: "axis", checked: view.axis === axis, onchange: () => { view.axis = axis; changed(); }});
    label.append(words);
  }
  for (const name of ["logx", "logy"]) {
    const input = document.getElementById(name);
    Object.assign(input, {checked: view[name], onchange: () => { view[name] = input.checked; changed(); }});
  }
  const slider = document.getElementById("smooth"), output = document.getElementById("smoothed");
  const tell = () => { output.textContent = view.smooth ? view.smooth.toFixed(2) : "off"; };
  slider.value = view.smooth;
  slider.oninput = () => { view.smooth = Number(slider.value); tell(); changed(); };
  tell();
}

/// Each note once, with the runs that it is about.
function writeNotes() {
  const home = document.getElementById("notes"), about = new Map();
  for (const run of runs) for (const note of run.notes) about.set(note, [...about.get(note) || [], run.name]);
  for (const [note, names] of about) {
    const more = names.length > 4 ? ` and ${names.length - 3} more` : "";
    element(home, "li", runs.length > 1 ? `${names.slice(0, more ? 3 : 4).join(", ")}${more}: ${note}` : note);
  }
}

/// Something that opens at a click, and stays open on a page that loads itself again.
function fold(home, key, words) {
  const made = element(home, "details");
  element(made, "summary", words);
  made.open = view.open.includes(key);
  made.ontoggle = () => {
    view.open = [...view.open.filter((one) => one !== key), ...(made.open ? [key] : [])];
    remember();
  };
  return made;
}

/// Prompts and their continuations by step, the newest first.
function writeSamples() {
  const home = document.getElementById("samples"), having = runs.filter((run) => run.samples);
  if (having.length) element(home, "h2", "Samples");
  for (const run of having) {
    const list = runs.length > 1 ? fold(home, run.path, run.name) : home;
    for (const of of [...run.samples].reverse()) {
      const step = fold(list, `${run.path} ${of.step}`, `step ${of.step.toLocaleString("en")}`);
      for (const [prompt, words] of of.rows) {
        element(step, "pre", prompt).className = "prompt";
        element(step, "pre", words);
      }
    }
  }
}

function begin() {
  paint();
  for (const run of runs) run.hidden = view.hidden.includes(run.path);
  document.title = runs.length === 1 ? `${runs[0].name}: zero_report` : `${runs.length} runs: zero_report`;
  document.querySelector("h1").textContent = runs.length === 1 ? runs[0].name : `${runs.length} runs`;
  document.getElementById("made").textContent = `zero_report ${data.version}, ${data.made}${data.live ? ", written again while the run goes on" : ""}`;
  writeNotes();
  writeParts();
  writeSamples();
  const fill = table(), home = document.getElementById("charts");
  const charts = data.fields.map((field) => new Chart(field, view, runs, home));
  let asked = 0;
  const changed = () => {
    remember();
    cancelAnimationFrame(asked);
    asked = requestAnimationFrame(() => charts.forEach((chart) => chart.update()));
  };
  controls(changed);
  legend(changed);
  charts.forEach((chart) => chart.update());
  const redraw = () => charts.forEach((chart) => chart.draw());
  window.addEventListener("resize", redraw);
  dark.addEventListener("change", () => { paint(); fill(); legend(changed); redraw(); });
  if (view.scroll) window.scrollTo(0, view.scroll);
  if (data.live) setTimeout(() => { remember(); location.reload(); }, data.refresh * 1000);
}

begin();
