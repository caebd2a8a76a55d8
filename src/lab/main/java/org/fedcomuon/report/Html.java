package org.fedcomuon.report;

import org.fedcomuon.chart.Markup;

/**
 * The frame of every page. All markup is well-formed XML too, so that tools and tests can parse it: every tag is
 * closed, and only XML's own entities are used.
 */
public final class Html {
    /** Follows the style sheet of charts, which defines the colours. */
    private static final String STYLE = """
            body { margin: 0; background: var(--paper); color: var(--ink); line-height: 1.5;
              font-family: system-ui, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans", Arial, sans-serif; }
            main { max-width: 72rem; margin: 0 auto; padding: 1.5rem 1rem 3rem; overflow-wrap: anywhere; }
            h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .3rem; }
            h2 { font-size: 1.2rem; margin: 2rem 0 .4rem; }
            p, dl, figcaption { max-width: 46rem; margin: .4rem 0; }
            .facts, figcaption { color: var(--soft); }
            figcaption { font-size: .875rem; }
            dt { font-weight: 600; }
            dd { margin: 0 0 .5rem; }
            sub, sup { line-height: 0; }
            figure { margin: 0; }
            .pair, .many { display: grid; }
            .pair { gap: 0 2rem; grid-template-columns: repeat(auto-fit, minmax(min(26rem, 100%), 1fr)); }
            .pair figure { display: flex; flex-direction: column; }
            .pair .legend { order: 1; } /* below, so that the plots begin at the same height */
            .pair figcaption { order: 2; }
            .many { gap: 1rem 1.5rem; grid-template-columns: repeat(auto-fill, minmax(min(20rem, 100%), 1fr)); }

            .legend button { font: inherit; color: inherit; background: none; border: 0; padding: .1rem;
              cursor: pointer; text-align: left; }
            .legend button[aria-pressed="false"] { opacity: .45; text-decoration: line-through; }

            table { border-collapse: collapse; font-size: .875rem; font-variant-numeric: tabular-nums;
              overflow-wrap: normal; width: 100%; }
            th, td { padding: .2rem .6rem; text-align: right; white-space: nowrap; }
            thead th { vertical-align: bottom; white-space: normal; border-bottom: 1px solid var(--soft); }
            tbody tr + tr > * { border-top: 1px solid var(--grid); }
            .text { text-align: left; white-space: normal; min-width: 9rem; max-width: 20rem; overflow-wrap: anywhere; }
            tbody .text { font-weight: 400; }
            th:first-child { position: sticky; left: 0; background: var(--paper); }
            .compact .text { min-width: 0; overflow-wrap: normal; }
            @media (max-width: 30rem) {
              .compact { font-size: .75rem; }
              .compact th, .compact td { padding: .2rem; white-space: normal; }
            }
            @media (min-width: 60rem) { th.text:first-child { min-width: 16.5rem; } }
            .runs { width: auto; }
            .runs th.text:first-child { min-width: 8rem; }
            @media (min-width: 60rem) { .runs th.text:first-child { min-width: 11.5rem; } }
            .runs th, .runs td { padding: .2rem .45rem; }
            tr.group th { text-align: left; background: var(--wash); padding-top: .45rem; }
            .group span { position: sticky; left: .6rem; }
            .best { background: var(--best); font-weight: 600; }
            .best::before { content: "★ "; }
            .agrees { background: var(--best); }
            .differs { background: var(--worse); }
            .warning { background: var(--worse); padding: .3rem .6rem; }
            .strip svg { display: block; width: 320px; height: 18px; }
            .strip rect { fill: var(--ink); opacity: .6; }
            .split { width: auto; }
            .maps { display: flex; flex-wrap: wrap; gap: 1rem 2.5rem; align-items: flex-start; }
            .maps .scroll { max-width: 100%; }
            caption { text-align: left; font-weight: 600; padding: .2rem .6rem; }
            h3 { font-size: 1rem; margin: 1rem 0 .3rem; }
            a { color: var(--c1); }
            .split td { background: color-mix(in srgb, #56b4e9 calc(55% * var(--share, 0)), var(--paper)); }
            .bar { display: block; width: 100%; height: .9rem; }
            .bar rect, .swatch { fill: var(--c); }
            .shares { margin: 0; }
            .shares p { display: flex; justify-content: space-between; gap: 1rem; margin: 0; font-size: .875rem; }
            .shares ul { list-style: none; display: flex; flex-wrap: wrap; gap: 0 .9rem; margin: 0; padding: 0;
              font-size: .8125rem; color: var(--soft); font-variant-numeric: tabular-nums; }
            .settings { max-width: none; display: grid; gap: .1rem 1.5rem;
              grid-template-columns: repeat(auto-fill, minmax(min(16rem, 100%), 1fr)); font-size: .875rem; }
            .settings div { display: flex; justify-content: space-between; gap: 1rem;
              border-bottom: 1px solid var(--grid); padding: .1rem 0; }
            .settings dt { font-weight: 400; color: var(--soft); overflow-wrap: normal; }
            .settings dd { margin: 0; text-align: right; }
            .settings .wide { grid-column: 1 / -1; justify-content: flex-start; }
            .settings .wide dd { text-align: left; }
            summary { cursor: pointer; margin: .4rem 0; }
            th small, td small { display: block; color: var(--soft); font-weight: 400; }

            @media print {
              body { font-size: 10pt; }
              main { max-width: none; padding: 0; }
              .pair { grid-template-columns: 1fr 1fr; }
              .legend { break-after: avoid; }
              .scroll { overflow: visible; }
              table { font-size: 7.5pt; }
              th, td { padding: .1rem .3rem; }
              svg, tbody { break-inside: avoid; }
              h2 { break-after: avoid; }
            }
            """;

    /** Lets a reader hide single lines. It must not contain characters that are markup in XML. */
    private static final String SCRIPT = """
            for (const item of document.querySelectorAll('.legend li')) {
              const button = document.createElement('button');
              button.type = 'button';
              button.title = 'show or hide';
              button.setAttribute('aria-pressed', 'true');
              button.append(...item.childNodes);
              button.onclick = () => {
                const shown = button.getAttribute('aria-pressed') === 'false';
                button.setAttribute('aria-pressed', shown);
                for (const line of item.closest('figure').querySelectorAll(`g[data-series="${item.dataset.series}"]`)) {
                  line.style.display = shown ? '' : 'none';
                }
              };
              item.append(button);
            }
            """;

    private Html() {}

    /**
     * Returns a whole document.
     *
     * @param title as text
     * @param body as markup
     */
    public static String document(String title, String body) {
        // nothing is loaded from anywhere, and the policy forbids it
        return """
                <!DOCTYPE html>
                <html lang="en">
                <head>
                <meta charset="utf-8"/>
                <meta name="viewport" content="width=device-width, initial-scale=1"/>
                <meta http-equiv="Content-Security-Policy"
                  content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"/>
                <title>%s</title>
                <style>
                %s</style>
                </head>
                <body>
                <main>
                %s</main>
                <script>
                %s</script>
                </body>
                </html>
                """.formatted(Markup.escape(title), Markup.style() + STYLE, body, SCRIPT);
    }
}
