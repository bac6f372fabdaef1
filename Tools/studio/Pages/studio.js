// Starts the pages: opens the data source, shows the tab that the URL names, and follows the log.
// modules: text.js dom.js status.js route.js failure.js served.js mailed.js source.js windows.js list.js json.js preferences.js menu.js filter.js histogram.js detail.js timeline.js table.js plot.js slider.js compare.js views.js page.js outbox.js segments.js files.js takeout.js keys.js banner.js studio.js
import { failureBanner, problemBanner } from './banner.js';
import { announce, button, content, element, setChildren } from './dom.js';
import { isCancelled } from './failure.js';
import { Files } from './files.js';
import { listenForKeys } from './keys.js';
import { Outbox } from './outbox.js';
import { preference, setPreference } from './preferences.js';
import { changedParameters, formatFragment, navigate, parseFragment, tabNames } from './route.js';
import { openSource } from './source.js';
import { openTakeout } from './takeout.js';
import { countOf, formatBytes, formatShare } from './text.js';
import { Timeline } from './timeline.js';
import { Views } from './views.js';

const pollInterval = 1_000;
const hiddenPollInterval = 5_000;
const failurePollInterval = 2_000;
const themes = ['auto', 'light', 'dark'];
const tabLabels = { timeline: 'Timeline', views: 'Views', outbox: 'Outbox', files: 'Files' };

/** The whole address of a screen: checkers take a link that begins with # for a skip link. */
function addressOf(fragment) {
  return location.href.split('#')[0] + fragment;
}

/** The page as a whole. The tabs use it for the source, the log, links and changes of the URL. */
class Studio {
  /** The data source. */
  source = openSource();

  /** The last answer about the log. */
  log = null;

  #tabs = {};
  #lastParameters = {};
  #route = parseFragment(location.hash);
  #version = null;
  #wasOpen = null;
  #shownTab = null;
  #pollTimer = null;
  #failure = null;

  /** "utc" or "local": how times are shown. */
  get zone() {
    return this.#route.parameters.get('time') === 'local' ? 'local' : 'utc';
  }

  /** The address of a tab with the given parameters only. */
  link(tab, changes) {
    return addressOf(formatFragment(tab, changedParameters(this.#commonParameters(), changes)));
  }

  /** The address of the present screen with changes. */
  linkWith(changes) {
    return addressOf(formatFragment(this.#route.tab, changedParameters(this.#route.parameters, changes)));
  }

  /** Changes the present screen's parameters in the URL. */
  change(changes, replace = false) {
    // The URL is ahead of the shown route while its event is on the way; a second change must not undo the first.
    const { tab, parameters } = parseFragment(location.hash);
    navigate(formatFragment(tab, changedParameters(parameters, changes)), replace);
  }

  /** The view that was shown last, for links into the Views tab. */
  viewParameters() {
    const view = this.#lastParameters.views?.get('view');
    return view ? { view } : {};
  }

  /** Shows a failed request above the tabs. */
  reportFailure(error) {
    if (isCancelled(error)) return;
    const isRepeated = this.#failure?.code === error.code;
    this.#failure = error;
    this.#showBanners();
    this.#showHeader();
    if (!isRepeated) announce(error.message);
  }

  /** Starts the page. */
  async start() {
    this.#applyTheme(preference('theme', 'auto'));
    this.#buildHeader();
    this.#listen();
    document.getElementById('skip').addEventListener('click', (event) => {
      event.preventDefault(); // the fragment names the screen
      document.getElementById('main').focus();
    });
    window.addEventListener('hashchange', () => this.#routeChanged());
    document.addEventListener('visibilitychange', () => this.#poll());
    await this.#poll();
  }

  #commonParameters() {
    return this.zone === 'local' ? new URLSearchParams({ time: 'local' }) : new URLSearchParams();
  }

  #buildHeader() {
    const find = (id) => document.getElementById(id);
    const actions = find('actions');
    const zone = button('', () => this.change({ time: this.zone === 'utc' ? 'local' : null }, true), { id: 'zone' });
    const theme = button('', () => this.#nextTheme(), { id: 'theme' });
    const takeout = button('data out', () => openTakeout(this, this.#timelineParameters(), this.#tab().address()), { id: 'takeout' });
    const help = button('?', () => this.#openHelp(), { 'aria-label': 'keyboard help' });
    setChildren(actions, zone, takeout, theme, help);
    this.#showTheme();
  }

  #openHelp = () => {};

  #timelineParameters() {
    return this.#route.tab === 'timeline' ? this.#route.parameters : this.#lastParameters.timeline ?? new URLSearchParams();
  }

  #listen() {
    const goTo = (tab) => () => navigate(this.#tabFragment(tab), false);
    this.#openHelp = listenForKeys([
      ...tabNames.map((tab) => ({ keys: `g ${tab[0]}`, meaning: `go to ${tabLabels[tab]}`, action: goTo(tab) })),
      { keys: '/', meaning: 'search', action: () => this.#tab()?.search() },
      { keys: 'j', meaning: 'next row', action: () => this.#tab()?.step(1) },
      { keys: 'k', meaning: 'previous row', action: () => this.#tab()?.step(-1) },
      { keys: '[', meaning: 'previous change of the view', action: () => this.#slide(-1) },
      { keys: ']', meaning: 'next change of the view', action: () => this.#slide(1) },
      { keys: 'Escape', meaning: 'close what is open', action: () => this.#tab()?.close() },
    ]);
  }

  #slide(direction) {
    if (this.#route.tab === 'views') this.#tab().slide(direction);
  }

  #applyTheme(theme) {
    if (theme === 'auto') delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
  }

  #nextTheme() {
    const present = preference('theme', 'auto');
    const theme = themes[(themes.indexOf(present) + 1) % themes.length];
    setPreference('theme', theme);
    this.#applyTheme(theme);
    this.#showTheme();
  }

  #showTheme() {
    document.getElementById('theme').textContent = `theme: ${preference('theme', 'auto')}`;
  }

  #tab() {
    return this.#tabs[this.#route.tab];
  }

  /** The fragment of a tab as it was left. */
  #tabFragment(tab) {
    const parameters = tab === this.#route.tab ? this.#route.parameters : this.#lastParameters[tab] ?? new URLSearchParams();
    return formatFragment(tab, changedParameters(parameters, { time: this.zone === 'local' ? 'local' : null }));
  }

  #routeChanged() {
    this.#lastParameters[this.#route.tab] = this.#route.parameters;
    this.#route = parseFragment(location.hash);
    this.#failure = null;
    this.#showRoute();
  }

  async #showRoute() {
    this.#showHeader();
    if (this.log === null) return;
    if (this.#isOfAnotherAccount()) {
      // The server refuses all else; the banner says why.
      this.#tabs[this.#shownTab]?.hide();
      this.#shownTab = null;
      setChildren(document.getElementById('main'), element('h1', { class: 'visually-hidden' }, 'The log of another account'));
      return;
    }
    const { tab, parameters } = this.#route;
    this.#tabs[tab] ??= this.#createTab(tab);
    if (this.#shownTab !== tab) {
      this.#tabs[this.#shownTab]?.hide();
      setChildren(document.getElementById('main'), this.#tabs[tab].element);
      document.title = `${tabLabels[tab]} · Daybook Studio`;
      this.#shownTab = tab;
    }
    await this.#tabs[tab].show(parameters);
  }

  #isOfAnotherAccount() {
    return this.log.problem?.code === 'wrongAccount';
  }

  #createTab(tab) {
    const makers = { timeline: Timeline, views: Views, outbox: Outbox, files: Files };
    return new makers[tab](this);
  }

  async #poll() {
    clearTimeout(this.#pollTimer);
    let interval = document.hidden ? hiddenPollInterval : pollInterval;
    try {
      this.log = await this.source.log();
      if (this.#failure?.code === 'gone') this.#failure = null;
      await this.#logRead();
    } catch (error) {
      this.reportFailure(error);
      interval = failurePollInterval;
    }
    // A mailed file does not change.
    if (this.source.form === 'served') this.#pollTimer = setTimeout(() => this.#poll(), interval);
  }

  async #logRead() {
    const isFirst = this.#version === null;
    const isChanged = this.log.version !== this.#version || this.log.isOpen !== this.#wasOpen;
    [this.#version, this.#wasOpen] = [this.log.version, this.log.isOpen];
    this.#showHeader();
    this.#showBanners();
    if (isFirst || this.#shownTab === null || this.#isOfAnotherAccount()) await this.#showRoute();
    else if (isChanged) await this.#tab()?.refresh();
  }

  #showHeader() {
    const { log } = this;
    setChildren(document.getElementById('tabs'), ...tabNames.map((tab) => element('a', {
      href: addressOf(this.#tabFragment(tab)), 'aria-current': tab === this.#route.tab ? 'page' : null,
    }, tabLabels[tab])));
    const zone = document.getElementById('zone');
    zone.textContent = this.zone === 'utc' ? 'UTC' : 'local time';
    zone.setAttribute('aria-label', `times in ${this.zone === 'utc' ? 'UTC' : 'local time'}; change`);
    if (log === null) return;
    setChildren(document.getElementById('facts'),
      element('span', { class: 'folder', title: log.folder }, content(log.folder ?? '')),
      log.account == null ? '' : element('span', {}, 'account ', content(log.account)),
      element('span', {}, countOf(log.events, 'event')), element('span', {}, formatBytes(log.bytes)),
      this.#readingMark(), this.#liveMark());
  }

  #readingMark() {
    const { log } = this;
    if (!log.complete) {
      const read = log.total == null ? countOf(log.indexed, 'event') : formatShare(log.indexed, log.total);
      return element('span', { class: 'live' }, `reading: ${read}`);
    }
    return log.viewsComplete ? '' : element('span', { class: 'live' }, `folding: ${formatShare(log.folded, log.events)}`);
  }

  #liveMark() {
    if (this.source.form === 'mailed') return element('span', { class: 'live' }, `○ ${this.source.note}`);
    if (this.#failure?.code === 'gone') return element('span', { class: 'live stopped' }, '■ stopped');
    const access = this.log.writable ? 'decisions allowed' : 'read-only';
    return element('span', { class: 'live' }, this.log.isOpen ? `● followed, a writer has it open, ${access}` : `○ followed, ${access}`);
  }

  #showBanners() {
    const banners = [this.log === null ? null : problemBanner(this.log), this.#failure === null ? null : failureBanner(this.#failure)];
    setChildren(document.getElementById('banners'), ...banners.filter((shown) => shown !== null));
  }
}

new Studio().start();
