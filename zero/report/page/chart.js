// Chart: the curves of one figure of all runs on a canvas, with axes and a box of values under the pointer.
"use strict";

const margin = {left: 56, right: 10, top: 10, bottom: 26};

/// A number for people. Kinds: bytes, seconds, count, or any other number.
function shown(value, kind) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  if (kind === "bytes") {
    const power = Math.min(4, Math.max(0, Math.floor(Math.log2(size || 1) / 10)));
    return brief(value / 1024 ** power) + " " + ["B", "KiB", "MiB", "GiB", "TiB"][power];
  }
  if (kind === "seconds") {
    if (size < 100) return brief(value) + " s";
    if (size < 6000) return brief(value / 60) + " min";
    return size < 172800 ? brief(value / 3600) + " h" : brief(value / 86400) + " d";
  }
  if (kind === "count" || size >= 1e5) {
    const power = Math.min(4, Math.max(0, Math.floor(Math.log10(size || 1) / 3)));
    if (power > 1 || size >= 1e5) return brief(value / 1000 ** power) + ["", " k", " M", " G", " T"][power];
  }
  return brief(value);
}

function brief(value) {
  const size = Math.abs(value);
  if (value !== 0 && (size < 1e-3 || size >= 1e6)) return value.toExponential(2).replace(/\.?0+e/, "e").replace("e+", "e");
  return size >= 1000 ? Math.round(value).toLocaleString("en") : String(Number(value.toPrecision(4)));
}

/// Round numbers from low to high: 1, 2 or 5 times a power of ten, or of 1024 for bytes.
function ticks(low, high, most, kind) {
  const unit = kind === "bytes" ? 1024 ** Math.max(0, Math.floor(Math.log2(Math.max(high, 1)) / 10)) : 1;
  const least = Math.max((high - low) / most, Number.MIN_VALUE) / unit, power = 10 ** Math.floor(Math.log10(least));
  const step = [1, 2, 5, 10].find((factor) => factor * power >= least * 0.999) * power * unit, found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9 && found.length < 50; ++k) found.push(k * step);
  return found;
}

function logTicks(low, high, most) {
  const first = Math.floor(Math.log10(low)), last = Math.ceil(Math.log10(high)), found = [];
  const factors = last - first <= 1 ? [1, 2, 3, 5, 7] : last - first <= 2 ? [1, 2, 5] : [1], every = Math.max(1, Math.ceil((last - first) / most));
  for (let power = first; power <= last; power += every)
    for (const factor of factors) {
      const value = Number((factor * 10 ** power).toPrecision(3));
      if (value >= low * 0.999 && value <= high * 1.001) found.push(value);
    }
  return found.length > 1 ? found : ticks(low, high, most);
}

/// The exponential moving average, without the bias towards the beginning. A gap stays one.
function smoothed(values, weight) {
  let mean = 0, total = 0;
  return values.map((value) => {
    if (value === null) return null;
    mean = weight * mean + (1 - weight) * value;
    total = weight * total + (1 - weight);
    return mean / total;
  });
}

/// A series' places on an axis. Between the run's own points they are interpolated.
function places(run, series, axis) {
  const steps = series.s || run.x.step;
  if (axis === "step" || !series.s) return series.s ? steps : run.x[axis];
  let k = 0;
  return steps.map((step) => {
    while (k + 2 < run.x.step.length && run.x.step[k + 1] < step) ++k;
    if (k + 1 >= run.x.step.length) return run.x[axis][k];
    const share = (step - run.x.step[k]) / (run.x.step[k + 1] - run.x.step[k]);
    return run.x[axis][k] + share * (run.x[axis][k + 1] - run.x[axis][k]);
  });
}

function nearest(sorted, x) {
  let low = 0, high = sorted.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (sorted[middle] < x) low = middle; else high = middle;
  }
  return Math.abs(sorted[low] - x) <= Math.abs(sorted[high] - x) ? low : high;
}

class Chart {
  /// field: {name, label, kind}; view: what the controls say; runs: those of the page, with colours.
  constructor(field, view, runs, home) {
    Object.assign(this, {field, view, runs, pointer: null});
    this.figure = element(home, "figure");
    const head = element(this.figure, "div");
    element(head, "h2", field.label);
    this.bad = element(head, "small");
    this.canvas = element(this.figure, "canvas");
    this.canvas.setAttribute("role", "img");
    this.canvas.setAttribute("aria-label", field.label);
    this.tip = element(this.figure, "div");
    this.tip.className = "tip";
    this.tip.hidden = true;
    const leave = () => { this.pointer = null; this.draw(); };
    this.canvas.addEventListener("pointermove", (event) => { this.pointer = {x: event.offsetX, y: event.offsetY}; this.draw(); });
    this.canvas.addEventListener("pointerdown", (event) => { this.pointer = {x: event.offsetX, y: event.offsetY}; this.draw(); });
    this.canvas.addEventListener("pointerleave", leave);
    this.canvas.addEventListener("pointercancel", leave);
  }

  /// The curves that are to be seen: {run, x, y, raw, low, high}. Called when a control has changed.
  update() {
    const {axis, smooth} = this.view, name = this.field.name;
    this.curves = this.runs.filter((run) => !run.hidden && run.series[name] && run.x[axis]).map((run) => {
      const series = run.series[name];
      return {run, x: places(run, series, axis), raw: series.v, y: smooth > 0 ? smoothed(series.v, smooth) : series.v, low: series.lo, high: series.hi, bad: series.bad || []};
    });
    const count = this.runs.reduce((sum, run) => sum + (run.hidden ? 0 : run.series[name]?.bads || 0), 0);
    this.bad.textContent = count ? `${count} not finite` : "";
    this.range();
    this.draw();
  }

  range() {
    const {logx, logy} = this.view;
    let [x0, x1, y0, y1] = [Infinity, -Infinity, Infinity, -Infinity];
    for (const {x, y, raw, low, high} of this.curves)
      for (let i = 0; i < x.length; ++i) {
        if (logx && x[i] <= 0) continue;
        x0 = Math.min(x0, x[i]), x1 = Math.max(x1, x[i]);
        for (const v of [y[i], raw[i], low?.[i], high?.[i]])
          if (v !== null && v !== undefined && !(logy && v <= 0)) y0 = Math.min(y0, v), y1 = Math.max(y1, v);
      }
    if (x0 === x1) x0 = logx ? x0 / 2 : x0 - 1, x1 = logx ? x1 * 2 : x1 + 1;
    if (y0 === y1) y0 = logy ? y0 / 2 : y0 - (Math.abs(y0) * 0.1 || 1), y1 = logy ? y1 * 2 : y1 + (Math.abs(y1) * 0.1 || 1);
    else if (logy) { const room = (y1 / y0) ** 0.04; y0 /= room, y1 *= room; }
    else { const room = (y1 - y0) * 0.04; y0 = y0 >= 0 && y0 < room ? 0 : y0 - room, y1 += room; }
    this.box = {x0, x1, y0, y1};
  }

  draw() {
    const scale = window.devicePixelRatio || 1, width = this.canvas.clientWidth, height = this.canvas.clientHeight;
    if (!width || !this.curves) return;
    if (this.canvas.width !== Math.round(width * scale)) this.canvas.width = Math.round(width * scale);
    if (this.canvas.height !== Math.round(height * scale)) this.canvas.height = Math.round(height * scale);
    const pen = this.canvas.getContext("2d");
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    pen.clearRect(0, 0, width, height);
    pen.font = "11px system-ui, sans-serif";
    const {x0, x1, y0, y1} = this.box, {logx, logy} = this.view, inner = {w: width - margin.left - margin.right, h: height - margin.top - margin.bottom};
    const share = (v, a, b, log) => log ? Math.log(v / a) / Math.log(b / a) : (v - a) / (b - a);
    this.at = {x: (v) => margin.left + inner.w * share(v, x0, x1, logx), y: (v) => margin.top + inner.h * (1 - share(v, y0, y1, logy))};
    if (!(x1 > x0) || !(y1 > y0)) {
      pen.fillStyle = colour("--faint");
      pen.fillText("nothing to show", margin.left, height / 2);
      this.tip.hidden = true;
      return;
    }
    this.axes(pen, width, height);
    pen.save();
    pen.beginPath();
    pen.rect(margin.left - 3, margin.top - 4, inner.w + 6, inner.h + 8);
    pen.clip();
    for (const curve of this.curves) this.curve(pen, curve);
    pen.restore();
    this.hover(pen, width, height);
  }

  axes(pen, width, height) {
    const {x0, x1, y0, y1} = this.box, {logx, logy, axis} = this.view, kinds = {step: "count", tokens: "count", seconds: "seconds"};
    const across = logx ? logTicks(x0, x1, width / 70) : ticks(x0, x1, width / 55), up = logy ? logTicks(y0, y1, 5) : ticks(y0, y1, 5, this.field.kind);
    pen.strokeStyle = colour("--grid");
    pen.fillStyle = colour("--faint");
    pen.lineWidth = 1;
    pen.textBaseline = "middle";
    pen.textAlign = "right";
    for (const v of up) {
      const y = Math.round(this.at.y(v)) + 0.5;
      line(pen, margin.left, y, width - margin.right, y);
      pen.fillText(shown(v, this.field.kind), margin.left - 6, y);
    }
    pen.textBaseline = "top";
    let free = -Infinity;
    for (const v of across) {
      const x = Math.round(this.at.x(v)) + 0.5, label = shown(v, kinds[axis]), half = pen.measureText(label).width / 2;
      line(pen, x, margin.top, x, height - margin.bottom);
      const middle = Math.min(x, width - half - 1);
      if (middle - half < free) continue;
      pen.textAlign = "center";
      pen.fillText(label, middle, height - margin.bottom + 7);
      free = middle + half + 8;
    }
  }

  curve(pen, {run, x, y, raw, low, high, bad}) {
    const {logy, logx, smooth} = this.view, at = this.at, visible = (i, v) => v !== null && !(logy && v <= 0) && !(logx && x[i] <= 0);
    pen.strokeStyle = pen.fillStyle = run.colour;
    if (low && !smooth && this.curves.length <= 8) {
      pen.globalAlpha = 0.18;
      for (let i = 0; i < x.length;) {
        while (i < x.length && !visible(i, low[i])) ++i;
        const begin = i;
        pen.beginPath();
        for (; i < x.length && visible(i, low[i]); ++i) pen.lineTo(at.x(x[i]), at.y(high[i]));
        for (let k = i - 1; k >= begin; --k) pen.lineTo(at.x(x[k]), at.y(low[k]));
        pen.fill();
        pen.stroke();  // a single high value stays visible
      }
    }
    const path = (values) => {
      let open = false;
      pen.beginPath();
      for (let i = 0; i < x.length; ++i) {
        const here = visible(i, values[i]);
        const alone = here && !open && !(i + 1 < x.length && visible(i + 1, values[i + 1]));
        if (here) pen[open ? "lineTo" : "moveTo"](at.x(x[i]), at.y(values[i]));
        if (alone) pen.lineTo(at.x(x[i]) + 1.5, at.y(values[i]));  // a point between two gaps
        open = here;
      }
      pen.stroke();
      if (x.length > 24) return;
      pen.setLineDash([]);
      for (let i = 0; i < x.length; ++i)
        if (visible(i, values[i])) dot(pen, at.x(x[i]), at.y(values[i]), 2.5);
    };
    pen.lineWidth = 1;
    if (smooth > 0) pen.globalAlpha = 0.2, path(raw);
    pen.globalAlpha = 1;
    pen.lineWidth = 1.6;
    pen.setLineDash(run.dash);
    path(y);
    pen.setLineDash([]);
    pen.fillStyle = colour("--bad");
    for (const step of bad) {
      const place = places(run, {s: [step]}, this.view.axis)[0];
      if (!(logx && place <= 0)) pen.fillRect(at.x(place) - 1, margin.top - 3, 2, 7);
    }
  }

  hover(pen, width, height) {
    this.tip.hidden = !this.pointer || this.pointer.x < margin.left - 8;
    if (this.tip.hidden) return;
    const {x0, x1} = this.box, part = (this.pointer.x - margin.left) / (width - margin.left - margin.right);
    const x = this.view.logx ? x0 * (x1 / x0) ** part : x0 + part * (x1 - x0);
    const found = this.curves.filter((curve) => curve.x.length).map((curve) => ({curve, i: nearest(curve.x, x)}));
    const away = ({curve, i}) => curve.y[i] === null ? Infinity : Math.abs(this.at.y(curve.y[i]) - this.pointer.y);
    const near = found.sort((a, b) => away(a) - away(b)).slice(0, 8);
    if (!near.length) return void (this.tip.hidden = true);
    const guide = this.at.x(near[0].curve.x[near[0].i]);
    pen.strokeStyle = colour("--faint");
    pen.lineWidth = 1;
    line(pen, guide, margin.top, guide, height - margin.bottom);
    const kind = this.view.axis === "seconds" ? "seconds" : "";
    this.tip.replaceChildren();
    element(this.tip, "div", `${this.view.axis === "seconds" ? "" : this.view.axis + " "}${kind ? shown(near[0].curve.x[near[0].i], kind) : Math.round(near[0].curve.x[near[0].i]).toLocaleString("en")}`);
    for (const {curve, i} of near) {
      const {run, y, raw, low, high} = curve, say = (v) => shown(v, this.field.kind), row = element(this.tip, "div");
      element(row, "span").className = "swatch";
      row.firstChild.style.background = run.colour;
      let words = raw[i] === null ? "not finite" : say(y[i]);
      if (y !== raw && raw[i] !== null) words += ` (unsmoothed ${say(raw[i])})`;
      if (low && raw[i] !== null && low[i] !== high[i]) words += ` (${say(low[i])} to ${say(high[i])})`;
      row.append(`${words}  ${run.name}`);
      if (y[i] === null) continue;
      pen.fillStyle = run.colour;
      dot(pen, this.at.x(curve.x[i]), this.at.y(y[i]), 3.5);
    }
    if (found.length > near.length) element(this.tip, "div", `and ${found.length - near.length} more`);
    const box = this.tip.getBoundingClientRect(), room = this.figure.clientWidth;
    const right = guide + 24 + box.width <= room;
    this.tip.style.left = Math.max(4, right ? guide + 20 : guide - box.width - 2) + "px";
    this.tip.style.top = Math.max(4, Math.min(this.pointer.y, this.figure.clientHeight - box.height - 8)) + "px";
  }
}

function dot(pen, x, y, radius) {
  pen.beginPath();
  pen.arc(x, y, radius, 0, 7);
  pen.fill();
}

function line(pen, x0, y0, x1, y1) {
  pen.beginPath();
  pen.moveTo(x0, y0);
  pen.lineTo(x1, y1);
  pen.stroke();
}
