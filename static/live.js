/*
 * Live pages: one websocket per page. When something changed, it brings the page's region as it is now. Where the page
 * may have missed something (it was loading or disconnected), or nothing can be pushed, htmx fetches the region.
 *
 * Either comes from the server's own template, so an updated page and a reloaded one can't differ. When a region is
 * replaced, this script keeps what its reader would lose: the scroll position, the order of rows under the pointer, and
 * in rows the focus and the selected text. Cells whose text changed flash once. Nothing is replaced while it is pressed.
 *
 * Attributes in the markup
 *   body[data-subscribe]      the message that subscribes to what the page shows (mqadmin/live/subscriptions.py)
 *   .region                   what the socket brings, and htmx fetches
 *   body[data-revision]       the revision of what the page shows (mqadmin/live/revisions.py)
 *   [data-days]               a list in which a heading stands before the first entry of each day, the viewer's
 *   [data-row], [data-cell]   a row's key inside table[id] or ol[id]; a cell that flashes when its text changes
 *   time.age, time.elapsed, time[data-clock]   updated each second, or written in the viewer's time zone
 *   .table-scroll, .tabs, .code-sample   scroll sideways; get data-more="left right" where there is more to see
 */
(() => {
  "use strict";

  const REFRESH_SPACING_MS = 1000; // a region is fetched at most once a second, whatever arrives
  const BACKOFF_MS = [500, 1000, 2000, 4000, 8000, 15000];
  const STEADY_MS = 15000; // a cell that changed this recently goes on changing: no flash, it would only blink
  const CLICK_WITHIN_MS = 50; // from the release until the browser has said that it was a click; a tap's comes late
  const PRESSED_MAX_MS = 10000; // no region waits longer for a release: one outside of the window may not be told
  const DISCONNECTED_AFTER_MS = 5000; // a shorter gap is "reconnecting", not worth alarm
  const SUBSCRIBED_WITHIN_MS = 10000;
  // close codes of mqadmin/live/sockets.py
  const INVALID_MESSAGE = 4400;
  const NOT_LOGGED_IN = 4401;
  const NOT_ALLOWED = 4403;
  const NOT_FOUND = 4404;

  /* ---- times ---- */

  const words = (document.getElementById("live-texts") || document.createElement("i")).dataset;

  function roughly(seconds) {
    if (seconds < 60) return `${seconds} ${words.second}`;
    if (seconds < 3600) return `${Math.floor(seconds / 60)} ${words.minute}`;
    if (seconds < 86400) return `${Math.floor(seconds / 3600)} ${words.hour}`;
    return `${Math.floor(seconds / 86400)} ${words.day}`;
  }

  const twoDigits = (number) => String(number).padStart(2, "0");

  function inTwo(large, largeUnit, small, smallUnit) {
    return `${Math.floor(large)} ${largeUnit} ${twoDigits(Math.floor(small))} ${smallUnit}`;
  }

  /* As figures.py writes durations: two units at most. */
  function exactly(seconds) {
    if (seconds < 60) return `${seconds} ${words.second}`;
    if (seconds < 3600) return inTwo(seconds / 60, words.minute, seconds % 60, words.second);
    if (seconds < 86400) return inTwo(seconds / 3600, words.hour, (seconds % 3600) / 60, words.minute);
    return inTwo(seconds / 86400, words.day, (seconds % 86400) / 3600, words.hour);
  }

  function updateTimes(root) {
    for (const time of root.querySelectorAll("time.elapsed")) {
      const seconds = Math.floor((Date.now() - Date.parse(time.dateTime)) / 1000);
      if (seconds >= 10) time.textContent = exactly(seconds);
    }
    for (const time of root.querySelectorAll("time.age")) {
      const seconds = Math.floor((Date.now() - Date.parse(time.dateTime)) / 1000);
      if (seconds < 0) continue;
      const text = seconds < 1 ? words.now : words.ago.replace("{}", roughly(seconds));
      if (time.textContent !== text) time.textContent = text;
      if (time.dataset.freshS) time.toggleAttribute("data-old", seconds > Number(time.dataset.freshS));
    }
  }

  function writeLocalTimes(root) {
    const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
    for (const time of root.querySelectorAll("time[data-clock]")) {
      const moment = new Date(time.dateTime);
      const clock = moment.toLocaleTimeString("en-GB");
      time.textContent = clock;
      time.title = `${moment.toLocaleDateString("en-CA")} ${clock} ${zone}`;
    }
  }

  /* Days begin at the viewer's midnight, and the server knows nothing but UTC's. */
  function writeLocalDays(root) {
    const locale = document.documentElement.lang === "en" ? "en-GB" : document.documentElement.lang;
    const words = new Intl.DateTimeFormat(locale, { weekday: "long", day: "numeric", month: "long", year: "numeric" });
    for (const list of root.querySelectorAll("[data-days]")) {
      for (const head of list.querySelectorAll(".day")) head.remove();
      let last = "";
      for (const entry of [...list.children]) {
        const day = words.format(new Date(entry.querySelector("time[data-clock]").dateTime));
        if (day === last) continue;
        const head = document.createElement("li");
        head.className = "day";
        head.textContent = day;
        entry.before(head);
        last = day;
      }
    }
  }

  /* ---- regions: what a reader would miss ---- */

  const lists = (region) => region.querySelectorAll("table[id], ol[id]");
  const rowsOf = (list) => [...list.querySelectorAll("[data-row]")];

  function cellsOf(row) {
    return new Map([...row.querySelectorAll("[data-cell]")].map((cell) => [cell.dataset.cell, cell.textContent.trim()]));
  }

  const rowOf = (list, key) => rowsOf(list).find((row) => row.dataset.row === key);

  /* A node inside a row, by the row's key and the way down from it: the row that comes has the same. */
  function placeOf(region, node) {
    const element = node instanceof Element ? node : node?.parentElement;
    const row = element?.closest("[data-row]");
    const list = row?.closest("table[id], ol[id]");
    if (!list || !region.contains(list)) return null;
    const way = [];
    for (let each = node; each !== row; each = each.parentNode) way.unshift([...each.parentNode.childNodes].indexOf(each));
    return { list: list.id, row: row.dataset.row, way };
  }

  function nodeAt(region, place) {
    const list = place && [...lists(region)].find((each) => each.id === place.list);
    const row = list && rowOf(list, place.row);
    return row && place.way.reduce((node, index) => node?.childNodes[index], row);
  }

  /* Selected text that begins and ends in rows. */
  function selectionIn(region) {
    const { isCollapsed, anchorNode, anchorOffset, focusNode, focusOffset } = getSelection();
    if (isCollapsed) return null;
    return { ends: [placeOf(region, anchorNode), placeOf(region, focusNode)], offsets: [anchorOffset, focusOffset] };
  }

  function select(region, { ends, offsets }) {
    const [from, to] = ends.map((place) => nodeAt(region, place));
    if (!from || !to) return;
    const [begin, end] = [from, to].map((node, each) => Math.min(offsets[each], (node.data ?? node.childNodes).length));
    getSelection().setBaseAndExtent(from, begin, to, end);
  }

  function snapshot(region) {
    const seen = { lists: new Map(), figures: cellsOf(region), scroll: new Map() };
    seen.focus = placeOf(region, document.activeElement);
    seen.selection = selectionIn(region);
    for (const list of lists(region)) {
      seen.lists.set(list.id, {
        order: rowsOf(list).map((row) => row.dataset.row),
        cells: new Map(rowsOf(list).map((row) => [row.dataset.row, cellsOf(row)])),
        isHeld: list.matches(":hover") || list.contains(document.activeElement),
      });
      const frame = list.closest(".table-scroll");
      if (frame) seen.scroll.set(list.id, frame.scrollLeft);
    }
    return seen;
  }

  function restore(region, seen) {
    for (const list of lists(region)) {
      const before = seen.lists.get(list.id);
      if (!before) continue;
      const frame = list.closest(".table-scroll");
      if (frame) frame.scrollLeft = seen.scroll.get(list.id);
      if (before.isHeld && list.tagName === "TABLE") holdOrder(region, list, before.order);
      for (const row of rowsOf(list)) markChanges(list.id, row, before.cells.get(row.dataset.row));
    }
    if (document.activeElement === document.body) nodeAt(region, seen.focus)?.focus({ preventScroll: true });
    if (seen.selection) select(region, seen.selection);
    for (const cell of region.querySelectorAll(".figure [data-cell]")) {
      flashIfChanged(cell, seen.figures.get(cell.dataset.cell), `figure ${cell.dataset.cell}`);
    }
  }

  function markChanges(listId, row, cells) {
    if (!cells) {
      row.classList.add("new-row");
      return;
    }
    for (const cell of row.querySelectorAll("[data-cell]")) {
      const name = cell.dataset.cell;
      flashIfChanged(cell, cells.get(name), `${listId} ${row.dataset.row} ${name}`);
    }
  }

  const changedAt = new Map(); // cell → when it last changed; as long as the page at most

  function flashIfChanged(cell, before, key) {
    if (before === undefined || before === cell.textContent.trim()) return;
    const now = Date.now();
    if (now - (changedAt.get(key) ?? 0) > STEADY_MS) cell.classList.add("flash");
    changedAt.set(key, now);
  }

  /* Rows under the pointer stay where they are; a button says that the order is another one, and applies it. */
  function holdOrder(region, list, order) {
    const wanted = rowsOf(list);
    const place = new Map(order.map((key, index) => [key, index]));
    const held = [...wanted].sort((a, b) => (place.get(a.dataset.row) ?? order.length) - (place.get(b.dataset.row) ?? order.length));
    const movedCount = held.filter((row, index) => row !== wanted[index]).length;
    if (!movedCount) return;
    const body = wanted[0].parentNode;
    body.append(...held);
    const pill = document.getElementById("order-changed-pill").content.cloneNode(true).firstElementChild;
    const button = pill.querySelector("button");
    button.textContent = words.moved.replace("{}", movedCount);
    button.addEventListener("click", () => {
      body.append(...wanted);
      pill.remove();
    });
    list.closest(".table-scroll").after(pill);
  }

  /* ---- boxes that scroll sideways: the style fades the side where there is more; a tab stop for the arrow keys ---- */

  function markScroll(box) {
    const isCut = getComputedStyle(box).overflowX !== "visible" && box.scrollWidth > box.clientWidth + 1;
    const hasLeft = isCut && box.scrollLeft > 1;
    const hasRight = isCut && box.scrollLeft + box.clientWidth < box.scrollWidth - 1;
    const more = [hasLeft && "left", hasRight && "right"].filter(Boolean).join(" ");
    if (more) box.dataset.more = more;
    else delete box.dataset.more;
    if (isCut) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
    if (!box.matches(".table-scroll")) return;
    if (isCut) {
      box.setAttribute("role", "group");
      box.setAttribute("aria-label", words.scrolls);
    } else {
      box.removeAttribute("role");
      box.removeAttribute("aria-label");
    }
  }

  const resizes = new ResizeObserver((entries) => {
    for (const { target } of entries) markScroll(target.closest(".table-scroll, .tabs, .code-sample"));
  });

  // the tab of this page, where it lies beyond the right edge
  function showCurrentTab(tabs) {
    const current = tabs.querySelector("[aria-current]");
    if (!current) return;
    const hidden = current.getBoundingClientRect().right - tabs.getBoundingClientRect().right;
    if (hidden > 0) tabs.scrollLeft += Math.ceil(hidden);
  }

  const scrollBoxes = (root) => root.querySelectorAll(".table-scroll, .tabs, .code-sample");

  function watchScroll(root) {
    for (const box of scrollBoxes(root)) {
      if (box.matches(".tabs")) showCurrentTab(box);
      box.addEventListener("scroll", () => markScroll(box), { passive: true });
      resizes.observe(box); // calls back at once, and whenever the width changes
      if (box.firstElementChild) resizes.observe(box.firstElementChild);
    }
  }

  /* ---- what is pressed stays until it is released: a click on what was replaced between would be none ---- */

  let released = null; // while something is pressed: settles when it no longer is
  let release = () => {};

  function press() {
    release();
    let timer = 0;
    const pressed = new Promise((resolve) => {
      release = () => {
        clearTimeout(timer);
        if (released === pressed) released = null;
        resolve();
      };
      timer = setTimeout(release, PRESSED_MAX_MS);
    });
    released = pressed;
  }

  function releaseSoon() {
    setTimeout(release, CLICK_WITHIN_MS);
  }

  document.addEventListener("pointerdown", press, true);
  for (const type of ["pointerup", "pointercancel"]) document.addEventListener(type, releaseSoon, true);
  document.addEventListener("keydown", (event) => event.key === " " && !event.repeat && press(), true);
  document.addEventListener("keyup", (event) => event.key === " " && releaseSoon(), true);
  addEventListener("blur", releaseSoon);

  const snapshots = new Map();

  document.addEventListener("htmx:beforeSwap", (event) => {
    const { target, xhr, requestConfig } = event.detail;
    // a session that ended is answered with the log-in page; the browser should show that page, not a region of it
    if (xhr.responseURL && new URL(xhr.responseURL).pathname !== new URL(requestConfig.path, location.href).pathname) {
      event.detail.shouldSwap = false;
      location.reload();
      return;
    }
    if (released) {
      event.detail.shouldSwap = false;
      released.then(refresh);
      return;
    }
    snapshots.set(target.id, snapshot(target));
  });

  // at once, so that no box that scrolls is without its tab stop until the observer is called
  document.addEventListener("htmx:afterSwap", (event) => scrollBoxes(event.target).forEach(markScroll));

  document.addEventListener("htmx:afterSettle", () => {
    for (const [id, seen] of snapshots) {
      const region = document.getElementById(id);
      if (!region) continue;
      writeLocalTimes(region);
      writeLocalDays(region);
      updateTimes(region);
      restore(region, seen);
      watchScroll(region);
    }
    snapshots.clear();
  });

  /* ---- fetching the region again ---- */

  let refreshTimer = 0;
  let refreshedAt = 0;
  let isStale = false; // something changed while the page was hidden

  function refresh() {
    if (document.hidden) {
      isStale = true;
      return;
    }
    if (refreshTimer) return;
    const wait = Math.max(0, refreshedAt + REFRESH_SPACING_MS - Date.now());
    refreshTimer = setTimeout(() => {
      refreshTimer = 0;
      isStale = false;
      refreshedAt = Date.now();
      document.body.dispatchEvent(new CustomEvent("live"));
    }, wait);
  }

  document.addEventListener("visibilitychange", () => isStale && refresh());

  /* ---- the region that the socket brings ---- */

  const canUnpack = typeof DecompressionStream === "function";

  function subscription() {
    const message = JSON.parse(document.body.dataset.subscribe);
    if (!canUnpack) delete message.page; // then the server says when to fetch
    return JSON.stringify(message);
  }

  async function showPushed(frame) {
    const html = await new Response(frame.stream().pipeThrough(new DecompressionStream("gzip"))).text();
    while (released) await released;
    const region = document.querySelector(".region");
    // what is being fetched is older
    clearTimeout(refreshTimer);
    refreshTimer = 0;
    region.addEventListener("htmx:beforeSwap", (event) => {
      event.detail.shouldSwap = false; // not aborted: htmx would call that an error
    });
    snapshots.set(region.id, snapshot(region));
    htmx.swap(region, html, { swapStyle: "outerHTML" });
  }

  /* ---- the socket, and the words about it in the top bar ---- */

  const indicator = document.getElementById("live-state");
  let disconnectedAt = 0; // 0 while connected, and before the first connection failed
  let indicatorTimer = 0;

  function show(state, text) {
    if (indicator.dataset.state === state && indicator.lastElementChild.textContent === text) return;
    indicator.dataset.state = state;
    indicator.lastElementChild.textContent = text;
  }

  function showConnection() {
    clearTimeout(indicatorTimer);
    if (!disconnectedAt) {
      show("live", words.live);
      return;
    }
    const left = disconnectedAt + DISCONNECTED_AFTER_MS - Date.now();
    if (left > 0) {
      show("reconnecting", words.reconnecting);
      indicatorTimer = setTimeout(showConnection, left);
    } else {
      show("disconnected", words.disconnected.replace("{}", new Date(disconnectedAt).toLocaleTimeString("en-GB")));
    }
  }

  function connect(attempt) {
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    const socket = new WebSocket(`${scheme}://${location.host}/ws/`);
    let isSubscribed = false;
    let isAsked = false; // the server knows that this page can take a region
    let silenceMs = SUBSCRIBED_WITHIN_MS;
    let silenceTimer = 0;

    function restartSilenceTimer() {
      clearTimeout(silenceTimer);
      silenceTimer = setTimeout(() => socket.close(), silenceMs);
    }

    function onSubscribed(event) {
      isSubscribed = true;
      silenceMs = event.heartbeat_s * 2000 + 1000;
      // what changed while the page was loading, or disconnected, was not heard of
      if (disconnectedAt || event.revision !== document.body.dataset.revision) refresh();
      disconnectedAt = 0;
      showConnection();
      askForNext();
    }

    /* A hidden page asks for nothing: it is brought what is so when somebody looks at it again. */
    function askForNext() {
      if (!isSubscribed || isAsked || document.hidden || socket.readyState !== WebSocket.OPEN) return;
      isAsked = true;
      socket.send('{"type":"ready"}');
    }

    /* Of one that cannot be unpacked the page fetches its own, and hears on. */
    async function onRegion(frame) {
      try {
        await showPushed(frame);
      } catch (error) {
        console.warn("a region that was pushed cannot be shown, so it is fetched", error);
        refresh();
      }
      isAsked = false;
      askForNext();
    }

    const onOffline = () => socket.close();
    addEventListener("offline", onOffline);
    document.addEventListener("visibilitychange", askForNext);
    restartSilenceTimer();
    socket.addEventListener("open", () => socket.send(subscription()));
    socket.addEventListener("message", (message) => {
      restartSilenceTimer();
      if (message.data instanceof Blob) {
        onRegion(message.data);
        return;
      }
      const event = JSON.parse(message.data);
      if (event.type === "subscribed") onSubscribed(event);
      if (event.type === "changed") refresh();
    });
    socket.addEventListener("close", (event) => {
      clearTimeout(silenceTimer);
      removeEventListener("offline", onOffline);
      document.removeEventListener("visibilitychange", askForNext);
      if (event.code === NOT_LOGGED_IN || event.code === NOT_ALLOWED) location.reload(); // the server says what to do
      disconnectedAt ||= Date.now();
      showConnection();
      const next = isSubscribed ? 0 : attempt + 1;
      const isHopeless = event.code === INVALID_MESSAGE || event.code === NOT_FOUND;
      const wait = isHopeless ? BACKOFF_MS.at(-1) : BACKOFF_MS[Math.min(next, BACKOFF_MS.length - 1)];
      setTimeout(connect, wait * (0.75 + Math.random() / 2), next);
    });
  }

  writeLocalTimes(document);
  writeLocalDays(document);
  watchScroll(document);
  if (words.ago) setInterval(() => updateTimes(document), 1000);
  if (indicator) connect(0);
})();
