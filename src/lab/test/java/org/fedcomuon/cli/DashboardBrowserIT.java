package org.fedcomuon.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import org.fedcomuon.dashboard.Dashboard;
import org.fedcomuon.testing.Events;
import org.fedcomuon.testing.Slow;
import org.fedcomuon.testing.TrainProcess;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** The live page in a real browser, of a real run. Leaves screenshots in target, to be looked at. */
@Timeout(value = 300, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
@Slow
class DashboardBrowserIT {
    private static final long PATIENCE = TimeUnit.SECONDS.toNanos(60);
    private static final String LEFT = "\uE012"; // WebDriver's name of the key

    /** What the page shows of the waiting. */
    private static final String WAITING =
            "const at = document.getElementById('waiting'); return at.checkVisibility() ? at.innerText : ''";

    private static final String POINTS =
            "return (document.querySelector('#curves g:not(.band) .line')?.getAttribute('d') ?? '').split('L').length";
    private static final String FIRST_POINT =
            "return Number(document.querySelector('#curves g:not(.band) .line').getAttribute('d').match(/^M([0-9.]+)/)[1])";
    private static final String STEP = "return Number(document.getElementById('step').textContent.replace(/\\D/g, ''))";

    @TempDir
    private Path temporary;

    private static void await(String what, Callable<Boolean> condition) throws Exception {
        long deadline = System.nanoTime() + PATIENCE;
        while (!condition.call()) {
            assertThat(System.nanoTime()).as(what).isLessThan(deadline);
            Thread.sleep(50);
        }
    }

    @Test
    void thePageFollowsTheRunAndKeepsItsHistory() throws Exception {
        Path log = temporary.resolve("log");
        try (var browser = new Browser(temporary.resolve("driver.log"))) {
            Process train =
                    TrainProcess.start(log, TrainProcess.command(TrainDashboardIT.longRun(temporary.resolve("run"))));
            try {
                browser.open(TrainDashboardIT.page(train, log));
                await("a curve", () -> browser.run(POINTS).asInt() >= 3);
                assertThat(text(browser, "state")).isEqualTo("running");
                assertThat(text(browser, "facts")).contains("fedcomuon", "mnist-robust", "10 clients");

                long step = browser.run(STEP).asLong();
                int points = browser.run(POINTS).asInt();
                await("a later step", () -> browser.run(STEP).asLong() > step);
                await("a longer curve", () -> browser.run(POINTS).asInt() > points);
                await("a rate", () -> text(browser, "rate").matches("[0-9.]+"));
                await("time left", () -> text(browser, "left").matches("[0-9].*"));
                assertThat(browser.run("return document.querySelectorAll('#curves figure').length")
                                .asInt())
                        .isGreaterThanOrEqualTo(3);
                assertThat(browser.run("return document.querySelectorAll('#chart-bars rect').length")
                                .asInt())
                        .isEqualTo(10);
                assertThat(browser.run("return document.querySelectorAll('#device-rows tr').length")
                                .asInt())
                        .isEqualTo(1);

                int before = browser.run(POINTS).asInt();
                browser.reload();
                await("the history", () -> browser.run(POINTS).asInt() >= before);
                assertThat(browser.run(FIRST_POINT).asDouble()).isLessThan(54 + 200.0 / before * 5);
                assertThat(browser.run("return document.querySelector('#curves figure:nth-of-type(2) .line')"
                                        + ".getAttribute('d')")
                                .asString())
                        .startsWith("M54.0 "); // the evaluation of step 0

                browser.type("#curves .plot", LEFT);
                assertThat(browser.run("return document.querySelector('#curves figcaption').textContent")
                                .asString())
                        .startsWith("at step");

                look(browser);
                assertThat(browser.console()).isEmpty();

                train.destroy();
                await("the end", () -> text(browser, "state").equals("stopped"));
                await("the farewell", () -> text(browser, "connection").contains("has ended"));
                assertThat(browser.run(POINTS).asInt()).isGreaterThanOrEqualTo(before);
                TrainProcess.end(train);
                assertThat(browser.console()).isEmpty();
            } finally {
                train.destroyForcibly();
            }
        }
    }

    @Test
    void aPageSaysWhatItWaitsFor() throws Exception {
        try (var browser = new Browser(temporary.resolve("driver.log"));
                Dashboard dashboard =
                        Dashboard.builder().title("my run").iterations(100).open()) {
            browser.open(dashboard.uri());
            assertThat(text(browser, "state")).isEqualTo("waiting");
            assertThat(text(browser, "title")).isEqualTo("my run");
            assertThat(browser.run(WAITING).asString()).startsWith("Waiting for the run to begin");
            String target = target();
            browser.show("light", 1280);
            browser.screenshot(Path.of(target, "dashboard-waiting.png"));
            browser.show("light", 400);
            assertThat(browser.run("return document.documentElement.scrollWidth")
                            .asInt())
                    .isLessThanOrEqualTo(400);
            browser.screenshot(Path.of(target, "dashboard-waiting-narrow.png"));
            dashboard.onStep(1);
            await("the run", () -> text(browser, "state").equals("running"));
            assertThat(browser.run(WAITING).asString()).isEmpty();

            var others = new ArrayList<Events>();
            browser.open(URI.create("about:blank"));
            await("no room", () -> {
                try {
                    others.add(Events.open(dashboard.uri(), ""));
                    return false;
                } catch (IOException e) {
                    return true;
                }
            });
            browser.open(dashboard.uri());
            await("a reason", () -> text(browser, "connection").startsWith("Too many browsers"));
            assertThat(text(browser, "state")).isEqualTo("running"); // as the document has it
            browser.screenshot(Path.of(target, "dashboard-refused.png"));
            others.forEach(Events::close);
            await("the next attempt", () -> browser.run(STEP).asLong() == 1);
            assertThat(text(browser, "connection")).isEmpty();
        }
    }

    private static String target() {
        return Files.isDirectory(Path.of("target")) ? "target" : ".";
    }

    /** On both kinds of paper, and on a telephone. */
    private static void look(Browser browser) throws Exception {
        String paper = "return getComputedStyle(document.body).backgroundColor";
        String target = target();
        browser.show("light", 1280);
        assertThat(browser.run(paper).asString()).isEqualTo("rgb(255, 255, 255)");
        browser.screenshot(Path.of(target, "dashboard-light.png"));
        browser.show("dark", 1280);
        assertThat(browser.run(paper).asString()).isEqualTo("rgb(20, 23, 26)");
        browser.screenshot(Path.of(target, "dashboard-dark.png"));
        browser.show("light", 400);
        assertThat(browser.run("return document.documentElement.scrollWidth").asInt())
                .isLessThanOrEqualTo(400);
        browser.screenshot(Path.of(target, "dashboard-narrow.png"));
        for (String name : new String[] {"light", "dark", "narrow"}) {
            assertThat(Path.of(target, "dashboard-%s.png".formatted(name))).isNotEmptyFile();
        }
    }

    private static String text(Browser browser, String id) throws Exception {
        return browser.run("return document.getElementById('%s').textContent".formatted(id))
                .asString();
    }
}
