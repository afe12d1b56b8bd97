// Draws the charts of a page with Plotly, in the colours of the theme, and again when the theme changes or they are printed.
"use strict";

(() => {
  const LABEL_CHARS_MAX = 24;
  const NARROW_PX = 600;
  // What A4 and Letter have between their margins; rows may be lower than where fingers point at them.
  const PAPER_PX = 690;
  const PAPER_HEIGHT = 0.75;

  const colour = (name) => {
    const probe = document.createElement("span");
    probe.className = `chart-tone-${name}`;
    document.body.append(probe);
    const value = getComputedStyle(probe).color;
    probe.remove();
    return value;
  };

  // In the middle: generated names differ at their end.
  const cut = (name, most) => (name.length > most ? `${name.slice(0, Math.ceil(most / 2))}…${name.slice(1 - Math.floor(most / 2))}` : name);

  // Plotly reads tags in texts.
  const plain = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");

  // As many as have room side by side.
  const labels = (values, room) => Math.max(2, Math.floor(room / (16 + 7 * Math.max(...values.map((one) => String(one).length)))));

  // Groups are told apart by their place: two long names may look alike when they are cut.
  const rows = (names) => [...new Set(names)];

  // What lies over it can still be read.
  const faint = (tone) => tone.replace(/^rgb\(/, "rgba(").replace(/\)$/, ", 0.25)");

  // Of what stands upright the values are numbers.
  const upright = (one, tones) => {
    const tone = tones[one.tone];
    if (one.is_band) return { ...one, fillcolor: faint(tone), hoverinfo: "skip" };
    return { ...one, marker: { color: tone }, line: { color: tone, width: one.width ?? 2 }, connectgaps: false,
      hovertemplate: "%{x} · %{y}<extra>%{fullData.name}</extra>" };
  };

  const trace = (one, names, tones, wide) => {
    const y = one.y.map((name) => names.indexOf(name));
    if (one.type === "heatmap") {
      const scale = [[0, tones.ground], [0.02, tones.low], [1, tones.stalled]];
      return { ...one, y, colorscale: scale, xgap: 1, ygap: 1, hoverongaps: false, showscale: wide, colorbar: { thickness: 10, outlinewidth: 0 },
        customdata: one.y.map((name) => one.x.map(() => plain(name))), hovertemplate: `%{customdata} · %{x}${typeof one.x[0] === "number" ? ":00" : ""} · %{z}<extra></extra>` };
    }
    if (one.type === "funnel") {
      // Where a bar is too narrow its figure stands beside it.
      return { ...one, y, textinfo: "text", textposition: "auto", insidetextfont: { color: tones.ground }, outsidetextfont: { color: tones.foreground }, cliponaxis: false,
        marker: { color: one.tones.map((name) => tones[name]) }, connector: { fillcolor: tones.line, line: { width: 0 } }, customdata: one.y.map(plain), hovertemplate: "%{customdata} · %{text}<extra></extra>" };
    }
    return { ...one, y, marker: { color: tones[one.tone] }, customdata: one.y.map(plain), hovertemplate: "%{customdata} · %{x}<extra>%{fullData.name}</extra>" };
  };

  const draw = (place, width) => {
    const figure = JSON.parse(document.getElementById(place.dataset.chart).textContent);
    const tones = {};
    for (const name of ["ground", "low", "foreground", "line", "accent", "slow", "stalled", "quiet", "rewound"]) tones[name] = colour(name);
    const names = figure.upright ? [] : rows(figure.data.flatMap((one) => one.y));
    const room = width ?? place.clientWidth;
    const kind = figure.data[0].type;
    // A band that is first has corners, and no place for what is missing.
    const places = figure.data.at(-1).x;
    const most = room < NARROW_PX ? LABEL_CHARS_MAX / 2 : LABEL_CHARS_MAX;
    const layout = {
      height: width ? figure.height * PAPER_HEIGHT : figure.height,
      width,
      barmode: figure.barmode,
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { color: tones.foreground, size: 12 },
      margin: { l: 8, r: 16, t: figure.data.length > 1 ? 36 : 8, b: 32 },
      legend: { orientation: "h", y: 1, yanchor: "bottom", x: 0 },
      showlegend: figure.data.length > 1,
      dragmode: false,
      xaxis: { gridcolor: tones.line, zerolinecolor: tones.line, automargin: true, visible: kind !== "funnel",
        ...(figure.upright || kind === "heatmap" ? { type: "category", categoryorder: "array", categoryarray: places, showgrid: false, tickangle: 0, nticks: labels(places, room), range: [-0.5, places.length - 0.5] } : {}) },
      yaxis: figure.upright ? { gridcolor: tones.line, zerolinecolor: tones.line, automargin: true, rangemode: "tozero" } : { autorange: "reversed", automargin: true, showgrid: false, zeroline: false, tickmode: "array",
        tickvals: names.map((_, place) => place), ticktext: names.map((name) => plain(cut(name, most))) },
    };
    const options = { responsive: true, displayModeBar: false };
    window.Plotly.react(place, figure.data.map((one) => (figure.upright ? upright(one, tones) : trace(one, names, tones, room >= NARROW_PX))), layout, options);
  };

  // By itself it says what it is of, and has the ground on which its colours can be read.
  const save = (button) => {
    const place = document.querySelector(`[data-chart="${button.dataset.png}"]`);
    const text = plain(`${document.title.split(" · ")[0]}: ${place.getAttribute("aria-label")}`);
    const ground = getComputedStyle(document.body).backgroundColor;
    const margin = { ...place.layout.margin, t: place.layout.margin.t + 36 };
    const title = { text, x: 0.01, y: 0.98, yanchor: "top", font: { size: 14 } };
    const layout = { ...place.layout, paper_bgcolor: ground, plot_bgcolor: ground, margin, title };
    const size = { width: 1200, height: place.layout.height + 36 };
    window.Plotly.downloadImage({ data: place.data, layout: { ...layout, ...size } }, { format: "png", filename: button.dataset.png, ...size });
  };

  const drawAll = (width) => document.querySelectorAll("[data-chart]").forEach((place) => draw(place, width));

  // Paper is light, and scripts see the screen's colours until it is printed.
  const root = document.documentElement;
  let theme;
  const toPaper = () => {
    theme = root.dataset.theme;
    root.dataset.theme = "light";
    drawAll(PAPER_PX);
  };
  const fromPaper = () => {
    if (theme === undefined) delete root.dataset.theme;
    else root.dataset.theme = theme;
    drawAll();
  };

  document.addEventListener("DOMContentLoaded", () => {
    drawAll();
    document.querySelectorAll("[data-png]").forEach((button) => button.addEventListener("click", () => save(button)));
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => drawAll());
  addEventListener("beforeprint", toPaper);
  addEventListener("afterprint", fromPaper);
})();
