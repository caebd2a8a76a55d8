package org.fedcomuon.report;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.StringReader;
import java.util.List;
import java.util.stream.IntStream;
import javax.xml.parsers.DocumentBuilderFactory;
import javax.xml.parsers.ParserConfigurationException;
import org.w3c.dom.Document;
import org.w3c.dom.Element;
import org.w3c.dom.NodeList;
import org.xml.sax.InputSource;
import org.xml.sax.SAXException;

/** Reads pages as XML: what they say, and where plots put it. */
final class Pages {
    /** What only an attacker would call something. */
    static final String HOSTILE = "<script>alert('x')</script> & \"quoted\" \u0000";
    /** The same as a page may show it. */
    static final String HARMLESS = HOSTILE.replace('\u0000', '\uFFFD');

    static {
        // the module itself needs no XML, so it does not read the JDK's parser unless told
        Pages.class
                .getModule()
                .addReads(ModuleLayer.boot().findModule("java.xml").orElseThrow());
    }

    private Pages() {}

    static Document parse(String html) {
        try {
            return DocumentBuilderFactory.newInstance()
                    .newDocumentBuilder()
                    .parse(new InputSource(new StringReader(html)));
        } catch (SAXException | ParserConfigurationException | IOException e) {
            throw new AssertionError("not well-formed", e);
        }
    }

    static List<Element> elements(Document document, String tag) {
        return list(document.getElementsByTagName(tag));
    }

    static List<Element> elements(Document document, String tag, String className) {
        return elements(document, tag).stream()
                .filter(element -> element.getAttribute("class").equals(className))
                .toList();
    }

    static List<String> texts(Document document, String tag) {
        return elements(document, tag).stream().map(Element::getTextContent).toList();
    }

    /** The texts of a row of a table. */
    static List<String> cells(Element row) {
        NodeList cells = row.getChildNodes();
        return IntStream.range(0, cells.getLength())
                .mapToObj(cells::item)
                .filter(Element.class::isInstance)
                .map(cell -> cell.getTextContent().strip())
                .toList();
    }

    static Element plot(Document document, String id) {
        return elements(document, "svg").stream()
                .filter(svg -> svg.getAttribute("aria-labelledby").startsWith(id + "-"))
                .findFirst()
                .orElseThrow();
    }

    /** The paths of a plot's lines, in the order in which they are drawn. */
    static List<String> lines(Document document, String id) {
        return list(plot(document, id).getElementsByTagName("path")).stream()
                .filter(path -> path.getAttribute("class").equals("line"))
                .map(path -> path.getAttribute("d"))
                .toList();
    }

    /** Every coordinate is a number, whatever was measured. */
    static void assertDrawsNothingButNumbers(Document document) {
        assertThat(elements(document, "path"))
                .allSatisfy(path -> assertThat(path.getAttribute("d")).matches("[MLHVaZ0-9. -]*"));
        for (String tag : List.of("text", "path", "svg")) {
            for (String attribute : List.of("x", "y", "transform", "viewBox")) {
                assertThat(elements(document, tag))
                        .allSatisfy(element -> assertThat(element.getAttribute(attribute))
                                .matches("[0-9. -]*|(translate\\([0-9. -]+\\) )?scale\\([0-9.]+\\)"));
            }
        }
    }

    static void assertRefersToNothingOutside(String html) {
        assertThat(html).doesNotContain("http://", "https://", " src=", " href=", "url(", "@import", "<link");
    }

    private static List<Element> list(NodeList nodes) {
        return IntStream.range(0, nodes.getLength())
                .mapToObj(i -> (Element) nodes.item(i))
                .toList();
    }
}
