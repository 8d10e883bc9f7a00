// Parts: where each run's steps spend their time, as a bar of shares and the largest part's name.

const partNames = {products: "matrix products", kernels: "other kernels", gathers: "gathers of weights", sums: "sums of gradients",
  ranks: "waiting for other ranks", data: "waiting for data"};
const partHues = {products: 214, attention: 190, kernels: 150, gathers: 24, sums: 46, disk: 340, data: 310, ranks: 268, other: 0};

function median(values) {
  const sorted = values.filter((value) => value !== null).sort((a, b) => a - b);
  return sorted.length ? sorted[Math.floor(sorted.length / 2)] : 0;
}

/// [part, share of the steps' seconds] of a run, the largest first; empty if the run did not log its parts.
function sharesOf(run) {
  const parts = data.parts.filter((part) => run.series["step_" + part])
    .map((part) => [part, median(run.series["step_" + part].v)]);
  const whole = parts.reduce((sum, [, seconds]) => sum + seconds, 0);
  return whole > 0 ? parts.map(([part, seconds]) => [part, seconds / whole]).sort((a, b) => b[1] - a[1]) : [];
}

function writeParts() {
  const home = document.getElementById("parts"), having = runs.filter((run) => sharesOf(run).length);
  if (!having.length) return;
  element(home, "h2", "Where a step's time goes");
  element(home, "p", "Medians over the steps, averaged over ranks.");
  const body = element(element(home, "table"), "tbody");
  for (const run of having) {
    const row = body.insertRow(), shares = sharesOf(run), bar = document.createElement("div");
    element(row, "td", run.name).className = "words";
    bar.className = "bar";
    for (const [part, share] of shares) {
      const piece = element(bar, "span");
      piece.style.width = `${100 * share}%`;
      piece.style.background = `hsl(${partHues[part] ?? 0} ${part === "other" ? "0%" : "60%"} 55%)`;
      piece.title = `${partNames[part] ?? part} ${(100 * share).toFixed(1)} %`;
    }
    element(row, "td").append(bar);
    const words = shares.filter(([, share]) => share >= 0.03).map(([part, share]) => `${partNames[part] ?? part} ${Math.round(100 * share)} %`);
    element(row, "td", words.join(", ")).className = "words";
  }
}
