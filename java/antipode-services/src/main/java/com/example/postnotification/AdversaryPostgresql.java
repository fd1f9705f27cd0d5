package com.example.postnotification;

import com.fasterxml.jackson.databind.JsonNode;
import dev.antipode.StoreOptions;
import dev.antipode.postgresql.AntipodePostgres;
import java.io.IOException;
import java.io.StringReader;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.sql.CallableStatement;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Savepoint;
import java.sql.Statement;
import java.sql.Types;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.function.UnaryOperator;
import org.postgresql.PGConnection;
import org.postgresql.copy.CopyIn;
import org.postgresql.copy.CopyManager;
import org.postgresql.copy.CopyOut;
import org.postgresql.core.BaseConnection;
import org.postgresql.ds.PGSimpleDataSource;
import org.postgresql.fastpath.FastpathArg;

/** PostgreSQL's JDBC driver, as the adversary plays it; the tables and routines are the Python stage's. */
final class AdversaryPostgresql implements Ways.Store {
  private static final String INSERT = "INSERT INTO posts (key, value) VALUES (?, 'v')";
  private static final String TEXT = "INSERT INTO posts (key, value) VALUES ('{}', 'v')";
  private static final String SELECT = "SELECT key FROM posts WHERE key = '{}'";
  private static final List<String> MODES = List.of("extended", "simple", "extendedForPrepared");

  private final String name;
  private final String primary;
  private final String replica;
  private final StoreOptions options;
  private final Connection control;
  private int ended; // so many transactions of two phases

  AdversaryPostgresql(JsonNode setup) throws SQLException {
    name = setup.get("store").asText();
    primary = setup.get("primary").asText();
    replica = setup.get("replica").asText();
    options = StoreOptions.named(name).replicas(jdbc(replica));
    control = source(primary, "extended").getConnection();
  }

  private static String jdbc(String url) {
    URI place = URI.create(url);
    return "jdbc:postgresql://" + place.getHost() + ":" + place.getPort() + place.getPath();
  }

  private static PGSimpleDataSource source(String url, String mode) {
    PGSimpleDataSource source = new PGSimpleDataSource();
    source.setUrl(jdbc(url) + "?connectTimeout=10&preferQueryMode=" + mode);
    source.setUser("app");
    return source;
  }

  /** A connection, and what is saved on it. */
  private final class Client implements Ways.Client {
    private final int kind;
    private final boolean isPlain;
    private final Deque<Savepoint> saved = new ArrayDeque<>();
    private Connection connection;

    Client(int kind, boolean isPlain) throws SQLException {
      this.kind = kind;
      this.isPlain = isPlain;
      reopen();
    }

    private Object reopen() throws SQLException {
      PGSimpleDataSource source = source(primary, MODES.get(kind / 4 % 3));
      if (isPlain) {
        connection = source.getConnection();
      } else if (kind / 2 % 2 == 0) {
        connection = AntipodePostgres.wrap(source, options).getConnection();
      } else {
        connection = AntipodePostgres.wrap(source.getConnection(), options);
      }
      connection.setAutoCommit(kind % 2 == 0);
      saved.clear();
      return null;
    }

    /** Closes the connection in whatever state it is, and has another one. */
    Object renew() throws SQLException {
      connection.close();
      return reopen();
    }

    /** Has the server end the connection. */
    Object kill() throws SQLException {
      int pid = connection.unwrap(PGConnection.class).getBackendPID();
      try (Statement statement = control.createStatement()) {
        statement.execute("SELECT pg_terminate_backend(" + pid + ", 5000)");
      }
      return null;
    }

    Object save() throws SQLException {
      saved.push(connection.setSavepoint());
      return null;
    }

    Object commitInTwoPhases(String ends) throws SQLException {
      String transaction = "adversary-java-" + ++ended;
      text(connection, "PREPARE TRANSACTION '" + transaction + "'");
      boolean before = connection.getAutoCommit();
      if (!before) {
        connection.rollback();
      }
      connection.setAutoCommit(true);
      text(connection, ends + " PREPARED '" + transaction + "'");
      connection.setAutoCommit(before);
      return null;
    }

    @Override
    public void close() throws SQLException {
      connection.close();
    }
  }

  @Override
  public Ways.Client open(int kind, boolean plain) throws SQLException {
    return new Client(kind, plain);
  }

  @Override
  public Ways.Client reader() throws SQLException {
    StoreOptions waits = StoreOptions.named(name).replicas(jdbc(replica)).waitOnRead(true);
    return new Reader(AntipodePostgres.wrap(source(replica, "extended"), waits).getConnection());
  }

  /** A connection to a replica. */
  private record Reader(Connection connection) implements Ways.Client {
    @Override
    public void close() throws SQLException {
      connection.close();
    }
  }

  @Override
  public boolean isOwn(Throwable error) {
    return error instanceof SQLException;
  }

  @Override
  public Map<String, Ways.Way<Ways.Client>> of(String kind) {
    return switch (kind) {
      case "write" -> WRITES;
      case "act" -> ACTS;
      default -> READS;
    };
  }

  /** All that a statement gives, result by result. */
  private static List<Object> results(Statement statement, boolean hasRows) throws SQLException {
    List<Object> found = new ArrayList<>();
    boolean isRows = hasRows;
    while (isRows || statement.getUpdateCount() != -1) {
      if (isRows) {
        try (ResultSet rows = statement.getResultSet()) {
          found.add(rows(rows));
        }
      } else {
        found.add(statement.getUpdateCount());
      }
      isRows = statement.getMoreResults();
    }
    return found;
  }

  private static List<Object> rows(ResultSet rows) throws SQLException {
    List<Object> found = new ArrayList<>();
    while (rows.next()) {
      found.add(rows.getString(1));
    }
    return found;
  }

  private static Object text(Connection connection, String text) throws SQLException {
    try (Statement statement = connection.createStatement()) {
      return results(statement, statement.execute(text));
    }
  }

  /** A text with the row written out. */
  private static Ways.Way<Client> writing(String text) {
    return (client, row) -> text(client.connection, text.replace("{}", row));
  }

  private static Ways.Way<Client> doing(String text) {
    return (client, row) -> text(client.connection, text);
  }

  @FunctionalInterface
  private interface Statements<S extends Statement> {
    Object with(S statement, String row) throws SQLException;
  }

  private static Ways.Way<Client> statement(Statements<Statement> use) {
    return (client, row) -> {
      try (Statement statement = client.connection.createStatement()) {
        return use.with(statement, row);
      }
    };
  }

  private static Ways.Way<Client> prepared(String text, Statements<PreparedStatement> use) {
    return (client, row) -> {
      try (PreparedStatement statement = client.connection.prepareStatement(text)) {
        statement.setString(1, row);
        return use.with(statement, row);
      }
    };
  }

  private static Ways.Way<Client> batch(String... texts) {
    return statement((statement, row) -> {
      for (String text : texts) {
        statement.addBatch(text.replace("{}", row));
      }
      return statement.executeBatch();
    });
  }

  private static Object called(Client client, String row) throws SQLException {
    try (CallableStatement statement = client.connection.prepareCall("{? = call book(?)}")) {
      statement.registerOutParameter(1, Types.VARCHAR);
      statement.setString(2, row);
      statement.execute();
      return statement.getString(1);
    }
  }

  private static Object procedure(Client client, String row) throws SQLException {
    try (CallableStatement statement = client.connection.prepareCall("CALL put(?)")) {
      statement.setString(1, row);
      return statement.execute();
    }
  }

  private static CopyManager copies(Connection connection) throws SQLException {
    return connection.unwrap(PGConnection.class).getCopyAPI();
  }

  private static Object copied(Client client, String row) throws SQLException, IOException {
    String line = row + "\tc\n";
    return copies(client.connection).copyIn("COPY posts (key, value) FROM STDIN", new StringReader(line));
  }

  private static Object copiedByHand(Client client, String row, boolean ends) throws SQLException {
    CopyIn copy = copies(client.connection).copyIn("COPY posts (key, value) FROM STDIN");
    byte[] line = (row + "\tc\n").getBytes(StandardCharsets.UTF_8);
    copy.writeToCopy(line, 0, line.length);
    if (ends) {
      return copy.endCopy();
    }
    copy.cancelCopy();
    return null;
  }

  private static Object insertRow(Client client, String row) throws SQLException {
    try (Statement statement = client.connection.createStatement(
            ResultSet.TYPE_SCROLL_INSENSITIVE, ResultSet.CONCUR_UPDATABLE);
        ResultSet rows = statement.executeQuery("SELECT key, value FROM posts WHERE key = '" + row + "'")) {
      rows.moveToInsertRow();
      rows.updateString(1, row);
      rows.updateString(2, "u");
      rows.insertRow();
      return null;
    }
  }

  private Object fastpath(Client client, String row) throws SQLException {
    int routine;
    try (Statement statement = control.createStatement();
        ResultSet rows = statement.executeQuery("SELECT 'book(text)'::regprocedure::oid::int")) {
      rows.next();
      routine = rows.getInt(1);
    }
    var fastpath = client.connection.unwrap(PGConnection.class).getFastpathAPI();
    fastpath.addFunction("book", routine);
    return fastpath.fastpath(
        "book", new FastpathArg[] {new FastpathArg(row.getBytes(StandardCharsets.UTF_8))});
  }

  private static Object fetched(Client client, String row) throws SQLException {
    try (Statement statement = client.connection.createStatement()) {
      statement.setFetchSize(1);
      try (ResultSet rows = statement.executeQuery("SELECT book(x) FROM unnest(ARRAY['" + row + "']) x")) {
        return rows(rows);
      }
    }
  }

  private final Map<String, Ways.Way<Ways.Client>> WRITES = new Ways.Table<>(Client.class)
      .add("parameters", prepared(INSERT, (statement, row) -> statement.executeUpdate()))
      .add("large update", prepared(INSERT, (statement, row) -> statement.executeLargeUpdate()))
      .add("parameters, by execute", prepared(INSERT, (statement, row) -> results(statement, statement.execute())))
      .add("returning", prepared(INSERT + " RETURNING key", (statement, row) -> rows(statement.executeQuery())))
      .add("text", statement((statement, row) -> statement.executeUpdate(TEXT.replace("{}", row))))
      .add("generated keys", statement((statement, row) -> {
        statement.executeUpdate(TEXT.replace("{}", row), new String[] {"key"});
        return rows(statement.getGeneratedKeys());
      }))
      .add("batch", batch(TEXT, "SELECT 1 WHERE false"))
      .add("batch of updates", batch(TEXT, "UPDATE posts SET value = 'w' WHERE key = '{}'"))
      .add("batch that fails", batch(TEXT, "UPDATE posts SET value = (1/0)::text WHERE key = '{}'"))
      .add("batch that commits", batch("BEGIN", TEXT, "COMMIT"))
      .add("batch of parameters", prepared(INSERT, (statement, row) -> {
        statement.addBatch();
        return statement.executeBatch();
      }))
      .add("large batch", prepared(INSERT, (statement, row) -> {
        statement.addBatch();
        statement.setString(1, row + "+");
        statement.addBatch();
        return statement.executeLargeBatch();
      }))
      .add("batch that fails later", prepared(INSERT, (statement, row) -> {
        statement.addBatch();
        statement.addBatch();
        return statement.executeBatch();
      }))
      .add("with", writing("WITH x AS (" + TEXT + " RETURNING key) SELECT * FROM x"))
      .add("explain analyze", statement((statement, row) ->
          statement.execute("EXPLAIN ANALYZE " + TEXT.replace("{}", row))))
      .add("function", prepared("SELECT book(?)", (statement, row) -> rows(statement.executeQuery())))
      .add("call", AdversaryPostgresql::called)
      .add("call of a procedure", AdversaryPostgresql::procedure)
      .add("function by fastpath", this::fastpath)
      .add("function that is fetched", AdversaryPostgresql::fetched)
      .add("function not in ASCII", writing("SELECT \"записать\"('{}')"))
      .add("function by a harmless name", writing("SELECT replace(1, '{}')"))
      .add("function in a condition", writing("SELECT 1 WHERE book('{}') = ''"))
      .add("function in values", writing("VALUES (book('{}'))"))
      .add("trigger", writing("INSERT INTO inbox VALUES ('{}')"))
      .add("do", writing("DO $x$ BEGIN " + TEXT + "; END $x$"))
      .add("do that commits", writing("DO $x$ BEGIN " + TEXT + "; COMMIT; END $x$"))
      .add("do that commits and fails", writing("DO $x$ BEGIN " + TEXT + "; COMMIT; PERFORM 1/0; END $x$"))
      .add("procedure that commits", writing("CALL put('{}')"))
      .add("text of two", writing(TEXT + "; SELECT 1"))
      .add("text that commits", writing(TEXT + "; COMMIT"))
      .add("text that commits first", writing("COMMIT; " + TEXT))
      .add("text that begins", writing("BEGIN; " + TEXT))
      .add("text of transactions", writing("BEGIN; " + TEXT + "; COMMIT; BEGIN"))
      .add("text that commits and fails", writing("BEGIN; " + TEXT + "; COMMIT; SELECT 1/0"))
      .add("text that fails", writing(TEXT + "; SELECT 1/0"))
      .add("comment", writing("/* SELECT */ -- x\n " + TEXT))
      .add("prepared by text", writing("DEALLOCATE ALL; PREPARE put_row AS " + TEXT + "; EXECUTE put_row"))
      .add("copy", AdversaryPostgresql::copied)
      .add("copy by hand", (client, row) -> copiedByHand(client, row, true))
      .add("copy that is cancelled", (client, row) -> copiedByHand(client, row, false))
      .add("row of a result", AdversaryPostgresql::insertRow)
      .add("the driver's own", (client, row) -> {
        client.connection.unwrap(BaseConnection.class).execSQLUpdate(TEXT.replace("{}", row));
        return null;
      })
      .all();

  private final Map<String, Ways.Way<Ways.Client>> ACTS = new Ways.Table<>(Client.class)
      .add("begin", doing("BEGIN"))
      .add("commit", act(Connection::commit))
      .add("rollback", act(Connection::rollback))
      .add("commit by text", doing("COMMIT"))
      .add("end by text", doing("END"))
      .add("rollback by text", doing("ROLLBACK"))
      .add("commit and chain", doing("COMMIT AND CHAIN"))
      .add("rollback and chain", doing("ROLLBACK AND CHAIN"))
      .add("savepoint", (client, row) -> client.save())
      .add("rollback to the savepoint", (client, row) -> {
        if (!client.saved.isEmpty()) {
          client.connection.rollback(client.saved.peek());
        }
        return null;
      })
      .add("release the savepoint", (client, row) -> {
        if (!client.saved.isEmpty()) {
          client.connection.releaseSavepoint(client.saved.pop());
        }
        return null;
      })
      .add("savepoint by text", doing("SAVEPOINT s"))
      .add("rollback to the savepoint by text", doing("ROLLBACK TO s"))
      .add("error", doing("SELECT 1/0"))
      .add("time-out", doing("SET LOCAL statement_timeout = 5; SELECT pg_sleep(1)"))
      .add("read", doing("SELECT count(*) FROM posts WHERE false"))
      .add("read only", act(connection -> connection.setReadOnly(true)))
      .add("read and write", act(connection -> connection.setReadOnly(false)))
      .add("serializable", act(each -> each.setTransactionIsolation(Connection.TRANSACTION_SERIALIZABLE)))
      .add("autocommit", act(connection -> connection.setAutoCommit(true)))
      .add("no autocommit", act(connection -> connection.setAutoCommit(false)))
      .add("commit in two phases", (client, row) -> client.commitInTwoPhases("COMMIT"))
      .add("rollback in two phases", (client, row) -> client.commitInTwoPhases("ROLLBACK"))
      .add("discard", doing("DISCARD ALL"))
      .add("kill", (client, row) -> client.kill())
      .add("abort", act(connection -> connection.abort(Runnable::run)))
      .add("new connection", (client, row) -> client.renew())
      .all();

  @FunctionalInterface
  private interface Act {
    void on(Connection connection) throws SQLException;
  }

  private static Ways.Way<Client> act(Act act) {
    return (client, row) -> {
      act.on(client.connection);
      return null;
    };
  }

  /** Whether a row is there, by a text. */
  private static Ways.Way<Reader> reading(UnaryOperator<String> text) {
    return (reader, row) -> {
      try (Statement statement = reader.connection.createStatement()) {
        List<Object> found = results(statement, statement.execute(text.apply(SELECT.replace("{}", row))));
        return found.toString().contains(row);
      }
    };
  }

  private static Object read(Reader reader, String row, int fetch) throws SQLException {
    boolean before = reader.connection.getAutoCommit();
    reader.connection.setAutoCommit(fetch == 0);
    try (PreparedStatement statement = reader.connection.prepareStatement(SELECT.replace("'{}'", "?"))) {
      statement.setFetchSize(fetch);
      statement.setString(1, row);
      try (ResultSet rows = statement.executeQuery()) {
        return rows.next();
      }
    } finally {
      reader.connection.setAutoCommit(before);
    }
  }

  private static Object copyOut(Reader reader, String row) throws SQLException {
    CopyOut rows = copies(reader.connection).copyOut("COPY (" + SELECT.replace("{}", row) + ") TO STDOUT");
    boolean found = false;
    while (rows.readFromCopy() != null) {
      found = true;
    }
    return found;
  }

  private final Map<String, Ways.Way<Ways.Client>> READS = new Ways.Table<>(Reader.class)
      .add("select", (reader, row) -> read(reader, row, 0))
      .add("fetch", (reader, row) -> read(reader, row, 1))
      .add("text", reading(text -> text))
      .add("with", reading(text -> "WITH x AS (" + text + ") SELECT * FROM x"))
      .add("values", reading(text -> "VALUES ((" + text + "))"))
      .add("text of two", reading(text -> "SELECT 1; " + text))
      .add("transaction by text", reading(text -> "BEGIN; " + text + "; COMMIT"))
      .add("cursor", reading(text -> "BEGIN; DECLARE c CURSOR FOR " + text + "; FETCH c; COMMIT"))
      .add("copy", AdversaryPostgresql::copyOut)
      .add("the driver's own", (reader, row) -> {
        try (ResultSet rows =
            reader.connection.unwrap(BaseConnection.class).execSQLQuery(SELECT.replace("{}", row))) {
          return rows.next();
        }
      })
      .all();
}
