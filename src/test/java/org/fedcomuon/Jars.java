package org.fedcomuon;

import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.TreeMap;
import java.util.jar.JarFile;
import java.util.stream.Stream;
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

    static {
        // Our module does not read it, and the tests are a part of our module.
        Jars.class
                .getModule()
                .addReads(ModuleLayer.boot().findModule("java.xml").orElseThrow());
    }

    /** By file name, where Maven keeps the jars of the class path, each beside its pom. */
    private final Map<String, Path> kept = new LinkedHashMap<>();

    Jars() {
        for (String property : List.of("java.class.path", "jdk.module.path", "surefire.test.class.path")) {
            for (String entry : System.getProperty(property, "").split(File.pathSeparator, -1)) {
                if (entry.endsWith(".jar") && pom(Path.of(entry)).isPresent()) {
                    kept.put(Path.of(entry).getFileName().toString(), Path.of(entry));
                }
            }
        }
    }

    /** Those in a directory that the build has filled, by file name. */
    List<Jar> in(Path directory) throws IOException {
        var jars = new TreeMap<String, Jar>();
        try (Stream<Path> files = Files.list(directory)) {
            for (Path file :
                    files.filter(file -> file.toString().endsWith(".jar")).toList()) {
                Jar jar = describe(kept.getOrDefault(file.getFileName().toString(), file), pomOf(file));
                jars.put(jar.file(), jar);
            }
        }
        return List.copyOf(jars.values());
    }

    /** Those that the tests see and none of {@code others}. */
    List<Jar> besides(List<Jar> others) throws IOException {
        var jars = new TreeMap<String, Jar>();
        for (Path file : kept.values()) {
            Jar jar = describe(file, pomOf(file));
            if (others.stream().noneMatch(other -> other.file().equals(jar.file()))) {
                jars.put(jar.file(), jar);
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
                file.getFileName().toString(), group + ":" + name, version, licences(project, repository(pom, group)));
    }

    /** Of a jar that only a directory of the build has, its own coordinates lead to the pom. */
    private Path pomOf(Path file) throws IOException {
        Path known = kept.get(file.getFileName().toString());
        if (known != null) {
            return pom(known).orElseThrow();
        }
        try (var jar = new JarFile(file.toFile())) {
            for (var entry : jar.stream()
                    .filter(entry -> entry.getName().endsWith("/pom.properties"))
                    .toList()) {
                var properties = new Properties();
                try (InputStream in = jar.getInputStream(entry)) {
                    properties.load(in);
                }
                String name = properties.getProperty("artifactId");
                String version = properties.getProperty("version");
                if (file.getFileName().toString().startsWith(name + "-" + version)) {
                    return pom(repository(), properties.getProperty("groupId"), name, version);
                }
            }
        }
        throw new IOException(file + " is not of this build; remove its directory, and build again");
    }

    /** Any of the poms that are known leads to the root. */
    private Path repository() throws IOException {
        for (Path file : kept.values()) {
            Path pom = pom(file).orElseThrow();
            Element project = parse(pom);
            Optional<String> group = text(project, "groupId");
            if (group.isPresent()) {
                return repository(pom, group.get());
            }
        }
        throw new IOException("no jar of the class path is beside its pom");
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
