// Drivers for Java as programs use them. Arguments: postgres, mysql or redis, and the host. Says a line for each that works.
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.Properties;
import redis.clients.jedis.Jedis;

public class Drivers {
  static void need(boolean is, String what) {
    if (!is) throw new IllegalStateException(what);
  }

  static void read(Connection c) throws SQLException {
    for (int k = 0; k < 8; k++) { // from the fifth time on pgjdbc prepares it at the server
      try (PreparedStatement s = c.prepareStatement("SELECT a FROM t WHERE id = ?")) {
        s.setInt(1, 3);
        ResultSet r = s.executeQuery();
        need(r.next() && r.getString(1).equals("row 3"), "a row");
      }
    }
    c.setAutoCommit(false);
    try (Statement s = c.createStatement()) {
      s.setFetchSize(100);
      ResultSet r = s.executeQuery("SELECT id FROM t");
      int n = 0;
      while (r.next()) n++;
      need(n == 1000, "rows by a cursor");
    }
    c.rollback();
    need(c.getMetaData().getTables(null, null, "t", null).next(), "a table's description");
    need(c.getMetaData().getPrimaryKeys(null, null, "t").next(), "a key's description");
  }

  static void write(Connection c) throws SQLException {
    c.setAutoCommit(false);
    try (PreparedStatement s = c.prepareStatement("INSERT INTO t VALUES (?, ?)")) {
      for (int i = 0; i < 50; i++) {
        s.setInt(1, 90000 + i);
        s.setString(2, "Gr\u00fc\u00dfe");
        s.addBatch();
      }
      need(s.executeBatch().length == 50, "a batch");
    }
    c.rollback();
    c.setAutoCommit(true);
    c.setReadOnly(true);
    c.setReadOnly(false);
    need(c.isValid(5), "a connection that is valid");
  }

  static void refused(Connection c, String statement) throws SQLException {
    try (Statement s = c.createStatement()) {
      s.execute(statement);
    } catch (SQLException e) {
      if (!e.getMessage().contains("durward: refused")) throw e;
      return;
    }
    need(false, "a refusal");
  }

  static void sql(String url, String statement) throws SQLException {
    Properties p = new Properties();
    p.put("user", "anybody");
    p.put("password", "placeholder");
    try (Connection c = DriverManager.getConnection(url, p)) {
      read(c);
      write(c);
      refused(c, statement);
      System.out.println(c.getMetaData().getDriverName() + " " + c.getMetaData().getDriverVersion().replaceAll("^[^0-9]*([0-9.]+).*", "$1"));
    }
  }

  static void redis(String host) {
    try (Jedis j = new Jedis(host, 6379)) {
      j.auth("anybody", "placeholder");
      j.set("java", "value");
      need(j.get("java").equals("value"), "a value");
      var p = j.pipelined();
      for (int i = 0; i < 100; i++) p.incr("java:n");
      var n = p.get("java:n");
      p.del("java:n");
      p.sync();
      need(n.get().equals("100"), "a pipeline");
      System.out.println("Jedis");
    }
  }

  public static void main(String[] a) throws SQLException {
    String host = a[1];
    switch (a[0]) {
      case "postgres":
        sql("jdbc:postgresql://" + host + "/orders", "DO 'BEGIN END'");
        sql("jdbc:postgresql://" + host + "/orders?sslmode=require&preferQueryMode=simple", "DO 'BEGIN END'");
        break;
      case "mysql":
        sql("jdbc:mariadb://" + host + "/orders", "SHOW GRANTS");
        sql("jdbc:mariadb://" + host + "/orders?useServerPrepStmts=true&rewriteBatchedStatements=true&sslMode=trust", "SHOW GRANTS");
        sql("jdbc:mysql://" + host + "/orders", "SHOW GRANTS");
        sql("jdbc:mysql://" + host + "/orders?useServerPrepStmts=true&rewriteBatchedStatements=true", "SHOW GRANTS");
        break;
      default:
        redis(host);
    }
  }
}
