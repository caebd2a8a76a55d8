package org.fedcomuon;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.TreeMap;
import javax.xml.parsers.DocumentBuilderFactory;
import javax.xml.parsers.ParserConfigurationException;
import org.w3c.dom.Element;
import org.w3c.dom.Node;
import org.xml.sax.SAXException;

/** The jars that the build has resolved, with what their poms say of them. */
final class Jars {
    /**
     * A jar.
     *
     * @param artifact group and name
     * @param licences as its pom, or the nearest parent's that says it, writes them
     */
    record Jar(String file, String artifact, String version, List<String> licences) {}

    private Jars() {}

    /** Those of a class path that Maven keeps beside their poms, in the order of their names; our own are left out. */
    static List<Jar> of(String classPath) throws IOException {
        var jars = new TreeMap<String, Jar>();
        for (String entry : classPath.strip().split(File.pathSeparator, -1)) {
            Optional<Path> pom = entry.endsWith(".jar") ? pom(Path.of(entry)) : Optional.empty();
            if (pom.isPresent()) {
                Jar jar = describe(Path.of(entry), pom.get());
                if (!jar.artifact().startsWith("org.fedcomuon:")) {
                    jars.put(jar.file(), jar);
                }
            }
        }
        return List.copyOf(jars.values());
    }

    private static Jar describe(Path file, Path pom) throws IOException {
        Element project = parse(pom);
        String group = text(project, "groupId")
                .or(() -> child(project, "parent").flatMap(parent -> text(parent, "groupId")))
                .orElseThrow();
        String name = text(project, "artifactId").orElseThrow();
        // Of the directory: in a pom it may be a property.
        String version = String.valueOf(pom.getParent().getFileName());
        return new Jar(
                String.valueOf(file.getFileName()),
                group + ":" + name,
                version,
                licences(project, repository(pom, group)));
    }

    /** The root of the repository that a pom is in: above its version, its name and each part of its group. */
    private static Path repository(Path pom, String group) {
        Path root = pom.getParent().getParent().getParent();
        for (int i = 0; i < group.split("\\.", -1).length; i++) {
            root = root.getParent();
        }
        return root;
    }

    private static Path pom(Path repository, String group, String name, String version) {
        return repository
                .resolve(group.replace('.', '/'))
                .resolve(name)
                .resolve(version)
                .resolve("%s-%s.pom".formatted(name, version));
    }

    private static Optional<Path> pom(Path jar) {
        Path version = jar.getParent();
        Path name = version == null ? null : version.getParent();
        if (name == null || name.getFileName() == null) {
            return Optional.empty();
        }
        Path pom = version.resolve("%s-%s.pom".formatted(name.getFileName(), version.getFileName()));
        return Files.exists(pom) ? Optional.of(pom) : Optional.empty();
    }

    private static List<String> licences(Element project, Path repository) throws IOException {
        Optional<Element> all = child(project, "licenses");
        if (all.isPresent()) {
            var names = new ArrayList<String>();
            for (Element licence : children(all.get())) {
                names.add(text(licence, "name").orElse("").replaceAll("\\s+", " "));
            }
            return List.copyOf(names);
        }
        Optional<Element> parent = child(project, "parent");
        if (parent.isEmpty()) {
            return List.of();
        }
        Path above = pom(
                repository,
                text(parent.get(), "groupId").orElseThrow(),
                text(parent.get(), "artifactId").orElseThrow(),
                text(parent.get(), "version").orElseThrow());
        return licences(parse(above), repository);
    }

    private static Element parse(Path file) throws IOException {
        try {
            var factory = DocumentBuilderFactory.newInstance();
            factory.setFeature("http://apache.org/xml/features/disallow-doctype-decl", true);
            return factory.newDocumentBuilder().parse(file.toFile()).getDocumentElement();
        } catch (ParserConfigurationException e) {
            throw new IllegalStateException(e);
        } catch (SAXException e) {
            throw new IOException(file + " is no pom", e);
        }
    }

    private static List<Element> children(Element element) {
        var found = new ArrayList<Element>();
        for (Node node = element.getFirstChild(); node != null; node = node.getNextSibling()) {
            if (node instanceof Element child) {
                found.add(child);
            }
        }
        return found;
    }

    private static Optional<Element> child(Element element, String name) {
        return children(element).stream()
                .filter(child -> child.getNodeName().equals(name))
                .findFirst();
    }

    private static Optional<String> text(Element element, String name) {
        return child(element, name).map(child -> child.getTextContent().strip()).filter(text -> !text.isEmpty());
    }
}
