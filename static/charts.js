// Draws the charts of a page with Plotly, in the colours of the theme, and again when the theme changes.
"use strict";

(() => {
  const LABEL_CHARS_MAX = 24;
  const NARROW_PX = 600;

  const colour = (name) => {
    const probe = document.createElement("span");
    probe.className = `chart-tone-${name}`;
    document.body.append(probe);
    const value = getComputedStyle(probe).color;
    probe.remove();
    return value;
  };

  const cut = (name, most) => (name.length > most ? `${name.slice(0, most - 1)}…` : name);

  // Groups are told apart by their place: two long names may look alike when they are cut.
  const rows = (names) => [...new Set(names)];

  // Of what stands upright the values are numbers, and the ground shows through what is filled.
  const upright = (one, tones) => {
    const tone = tones[one.tone];
    return { ...one, marker: { color: tone }, line: { color: tone, width: 2 }, fillcolor: tone.replace("rgb(", "rgba(").replace(")", ", 0.14)"),
      connectgaps: false, hovertemplate: "%{x} · %{y}<extra>%{fullData.name}</extra>" };
  };

  const trace = (one, names, tones) => {
    const y = one.y.map((name) => names.indexOf(name));
    if (one.type === "heatmap") {
      const scale = [[0, tones.ground], [0.02, tones.low], [1, tones.stalled]];
      return { ...one, y, colorscale: scale, xgap: 1, ygap: 1, hoverongaps: false, showscale: false,
        customdata: one.y.map((name) => one.x.map(() => name)), hovertemplate: `%{customdata} · %{x}${typeof one.x[0] === "number" ? ":00" : ""} · %{z}<extra></extra>` };
    }
    return { ...one, y, marker: { color: tones[one.tone] }, customdata: one.y, hovertemplate: "%{customdata} · %{x}<extra>%{fullData.name}</extra>" };
  };

  const draw = (place) => {
    const figure = JSON.parse(document.getElementById(place.dataset.chart).textContent);
    const tones = {};
    for (const name of ["ground", "low", "foreground", "line", "accent", "slow", "stalled", "quiet", "rewound"]) tones[name] = colour(name);
    const names = figure.upright ? [] : rows(figure.data.flatMap((one) => one.y));
    const most = place.clientWidth < NARROW_PX ? LABEL_CHARS_MAX / 2 : LABEL_CHARS_MAX;
    const layout = {
      height: figure.height,
      barmode: figure.barmode,
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { color: tones.foreground, size: 12 },
      margin: { l: 8, r: 16, t: figure.data.length > 1 ? 36 : 8, b: 32 },
      legend: { orientation: "h", y: 1, yanchor: "bottom", x: 0 },
      showlegend: figure.data.length > 1,
      dragmode: false,
      xaxis: { gridcolor: tones.line, zerolinecolor: tones.line, automargin: true, ...(figure.upright || figure.data[0].type === "heatmap" ? { type: "category", showgrid: false } : {}) },
      yaxis: figure.upright ? { gridcolor: tones.line, zerolinecolor: tones.line, automargin: true, rangemode: "tozero" } : { autorange: "reversed", automargin: true, showgrid: false, zeroline: false, tickmode: "array",
        tickvals: names.map((_, place) => place), ticktext: names.map((name) => cut(name, most)) },
    };
    const options = { responsive: true, displayModeBar: false };
    window.Plotly.react(place, figure.data.map((one) => (figure.upright ? upright(one, tones) : trace(one, names, tones))), layout, options);
  };

  const save = (button) => {
    const place = document.querySelector(`[data-chart="${button.dataset.png}"]`);
    window.Plotly.downloadImage(place, { format: "png", filename: button.dataset.png, width: 1200, height: place.clientHeight });
  };

  const drawAll = () => document.querySelectorAll("[data-chart]").forEach(draw);

  document.addEventListener("DOMContentLoaded", () => {
    drawAll();
    document.querySelectorAll("[data-png]").forEach((button) => button.addEventListener("click", () => save(button)));
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
})();
