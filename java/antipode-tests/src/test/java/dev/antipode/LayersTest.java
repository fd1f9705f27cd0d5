package dev.antipode;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaMember;
import com.tngtech.archunit.core.domain.JavaModifier;
import com.tngtech.archunit.core.domain.JavaType;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import dev.antipode.internal.diagnostics.history.HistoryObserver;
import dev.antipode.memory.MemoryStore;
import java.io.IOException;
import java.net.URL;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;
import org.junit.jupiter.api.Test;

/**
 * No class uses one of a higher room ({@code spec/layers.json}; {@code spec/layers.py} checks Python and C++ against the same
 * file). What runs upward today is listed there, and the list only shrinks.
 */
class LayersTest {
  private static final String ROOT = "dev.antipode.";
  private static final Set<String> PUBLIC =
      Set.of("dev.antipode", "dev.antipode.shim", "dev.antipode.observer", "dev.antipode.propagation");
  private static final List<URL> JARS = Stream.of(Antipode.class, HistoryObserver.class, MemoryStore.class)
      .map(each -> each.getProtectionDomain().getCodeSource().getLocation()).toList();

  private final Map<String, Integer> rooms = new HashMap<>();

  @Test
  void noClassUsesOneOfAHigherRoom() throws IOException {
    JsonNode document = document();
    JsonNode java = java();
    List<String> names = strings(document.get("rooms").findValues("name"));
    for (int height = 0; height < names.size(); height++) {
      for (String name : strings(java.get("rooms").get(names.get(height)))) {
        assertThat(rooms.put(name, height)).as("%s stands twice", name).isNull();
      }
    }

    TreeSet<String> files = new TreeSet<>();
    TreeSet<String> upward = new TreeSet<>();
    for (JavaClass each : new ClassFileImporter().importUrls(JARS)) {
      String lower = file(each);
      files.add(lower);
      each.getDirectDependenciesFromSelf().stream()
          .map(dependency -> dependency.getTargetClass().getBaseComponentType())
          .filter(target -> target.getName().startsWith(ROOT))
          .map(LayersTest::file)
          .filter(upper -> height(upper) > height(lower))
          .forEach(upper -> upward.add(lower + " -> " + upper));
    }

    assertThat(files).as("classes of the core, of diagnostics and of testing").hasSizeGreaterThan(100);
    assertThat(rooms.keySet()).as("names in spec/layers.json that no class has").allMatch(name -> isName(name, files));
    assertThat(upward).as("uses that run upward, beside those of spec/layers.json").containsExactlyElementsOf(
        new TreeSet<>(strings(java.get("upward"))));
  }

  @Test
  void publicSignaturesNameNoInnerType() throws IOException {
    TreeSet<String> exposed = new TreeSet<>();
    for (JavaClass each : new ClassFileImporter().importUrls(JARS)) {
      if (isPublic(each)) {
        Stream<JavaType> above = Stream.concat(each.getSuperclass().stream(), each.getInterfaces().stream());
        addInner(exposed, file(each), above);
        each.getCodeUnits().stream().filter(LayersTest::isPublic).forEach(unit -> addInner(exposed, nameOf(unit), Stream.concat(
            Stream.of(unit.getReturnType()), unit.getParameterTypes().stream())));
        each.getFields().stream().filter(LayersTest::isPublic)
            .forEach(field -> addInner(exposed, nameOf(field), Stream.of(field.getType())));
      }
    }
    assertThat(exposed).as("public signatures that name a type of internal, beside those of spec/layers.json")
        .containsExactlyElementsOf(new TreeSet<>(strings(java().get("exposed"))));
  }

  @Test
  void noOtherModuleImportsAnInnerType() throws IOException {
    Path root = layers().getParent().getParent();
    List<String> imports = new ArrayList<>();
    for (String folder : List.of("java/antipode-http", "java/antipode-grpc", "java/antipode-spring-boot-starter", "shims")) {
      try (Stream<Path> files = Files.walk(root.resolve(folder))) {
        for (Path file : files.filter(each -> each.toString().matches(".*/src/main/java/.*\\.java")).toList()) {
          Files.readString(file).lines().filter(line -> line.matches("import .*dev\\.antipode\\.internal\\..*"))
              .forEach(line -> imports.add(file.getFileName() + ": " + line));
        }
      }
    }
    assertThat(imports).isEmpty();
  }

  private static void addInner(TreeSet<String> exposed, String user, Stream<? extends JavaType> types) {
    types.flatMap(type -> type.getAllInvolvedRawTypes().stream())
        .filter(type -> type.getPackageName().startsWith(ROOT + "internal"))
        .forEach(type -> exposed.add(user + " -> " + file(type)));
  }

  /** Return whether applications and shims may call it. */
  private static boolean isPublic(JavaMember member) {
    Set<JavaModifier> modifiers = member.getModifiers();
    return !modifiers.contains(JavaModifier.SYNTHETIC)
        && (modifiers.contains(JavaModifier.PUBLIC) || modifiers.contains(JavaModifier.PROTECTED));
  }

  private static boolean isPublic(JavaClass type) {
    return PUBLIC.contains(type.getPackageName())
        && type.getModifiers().contains(JavaModifier.PUBLIC)
        && type.getEnclosingClass().map(LayersTest::isPublic).orElse(true);
  }

  private static String nameOf(JavaMember member) {
    return file(member.getOwner()) + "." + member.getName();
  }

  private int height(String file) {
    for (String name = file; !name.isEmpty(); name = folder(name)) {
      Integer height = rooms.get(name);
      if (height != null) {
        return height;
      }
    }
    throw new AssertionError(file + ": no room of spec/layers.json names it");
  }

  /** Returns the folder of a file, or of a folder; empty where there is none. */
  private static String folder(String name) {
    return name.substring(0, name.lastIndexOf('/', name.length() - 2) + 1);
  }

  /** Returns the source file of a class, below the root package and without its ending. */
  private static String file(JavaClass type) {
    String name = type.getName().substring(ROOT.length());
    int nested = name.indexOf('$');
    return (nested < 0 ? name : name.substring(0, nested)).replace('.', '/');
  }

  private static boolean isName(String name, TreeSet<String> files) {
    return name.endsWith("/") ? files.stream().anyMatch(file -> file.startsWith(name)) : files.contains(name);
  }

  private static List<String> strings(Iterable<JsonNode> nodes) {
    return new ArrayList<>(StreamSupport.stream(nodes.spliterator(), false).map(JsonNode::asText).toList());
  }

  private static JsonNode document() throws IOException {
    return new ObjectMapper().readTree(layers().toFile());
  }

  private static JsonNode java() throws IOException {
    return document().at("/languages/java");
  }

  private static Path layers() {
    return Path.of(System.getProperty("antipode.spec"), "layers.json");
  }
}
