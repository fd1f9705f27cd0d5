package dev.antipode.postgresql;

import static org.assertj.core.api.Assertions.assertThat;

import dev.antipode.testing.Inventory;
import java.sql.Blob;
import java.sql.CallableStatement;
import java.sql.Clob;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.Statement;
import java.sql.Wrapper;
import javax.sql.DataSource;
import org.junit.jupiter.api.Test;
import org.postgresql.PGConnection;
import org.postgresql.PGResultSetMetaData;
import org.postgresql.copy.CopyManager;
import org.postgresql.core.BaseConnection;

/** Every public method of JDBC and of the driver's interfaces is known here (SHIM-51). */
class InventoryTest {
  @Test
  void dataSource() {
    assertThat(Inventory.of(DataSource.class).without(Wrapper.class)
        .named("gives a wrapped connection", "getConnection")
        .named("refused: the driver has none", "createConnectionBuilder createShardingKeyBuilder")
        .named("neither", "getLogWriter getLoginTimeout getParentLogger setLogWriter setLoginTimeout")
        .differences()).isEmpty();
  }

  @Test
  void connection() {
    assertThat(Inventory.of(Connection.class).without(Wrapper.class)
        .named("gives a wrapped statement", "createStatement prepareCall prepareStatement")
        .named("ends a transaction", "abort close commit rollback setAutoCommit")
        .named("says where", "setSchema getMetaData")
        .named(
            "refused: the driver has none",
            "createBlob createClob createNClob createStruct setShardingKey setShardingKeyIfValid")
        .named(
            "neither",
            "beginRequest clearWarnings createArrayOf createSQLXML endRequest getAutoCommit getCatalog "
                + "getClientInfo getHoldability getNetworkTimeout getSchema getTransactionIsolation getTypeMap "
                + "getWarnings isClosed isReadOnly isValid nativeSQL releaseSavepoint setCatalog setClientInfo "
                + "setHoldability setNetworkTimeout setReadOnly setSavepoint setTransactionIsolation "
                + "setTypeMap")
        .differences()).isEmpty();
  }

  @Test
  void driversConnection() {
    assertThat(Inventory.of(PGConnection.class)
        .named("records and waits", "getCopyAPI getFastpathAPI getLargeObjectAPI")
        .named("no data: the role's own", "alterUserPassword")
        .named("refused: a connection of replication", "getReplicationAPI")
        .named(
            "neither",
            "addDataType cancelQuery createArrayOf escapeIdentifier escapeLiteral getAdaptiveFetch "
                + "getAutosave getBackendPID getDefaultFetchSize getNotifications getParameterStatus "
                + "getParameterStatuses getPreferQueryMode getPrepareThreshold getQueryTimeout "
                + "setAdaptiveFetch setAutosave setDefaultFetchSize setPrepareThreshold setQueryTimeout")
        .differences()).isEmpty();
    assertThat(Inventory.of(BaseConnection.class).without(Connection.class, PGConnection.class)
        .named("records and waits", "execSQLQuery execSQLUpdate getQueryExecutor")
        .named("refused: a connection of replication", "getReplicationProtocol")
        .named(
            "neither",
            "addTimerTask binaryTransferSend createQuery encodeString escapeString "
                + "getConvertBooleanToNumeric getEncoding getFieldMetadataCache getLogServerErrorDetail "
                + "getLogger getObject getStandardConformingStrings getStringVarcharFlag getTimestampUtils "
                + "getTransactionState getTypeInfo getXmlFactoryFactory haveMinimumServerVersion hintReadOnly "
                + "isColumnSanitiserDisabled purgeTimerTasks setFlushCacheOnDeallocate")
        .differences()).isEmpty();
    assertThat(Inventory.of(CopyManager.class).named("by the executor", "copyDual copyIn copyOut").differences()).isEmpty();
  }

  @Test
  void catalogue() {
    assertThat(Inventory.of(DatabaseMetaData.class).without(Wrapper.class)
        .named(
            "waits",
            "getAttributes getBestRowIdentifier getCatalogs getClientInfoProperties getColumnPrivileges "
                + "getColumns getCrossReference getExportedKeys getFunctionColumns getFunctions getImportedKeys "
                + "getIndexInfo getPrimaryKeys getProcedureColumns getProcedures getPseudoColumns getSchemas "
                + "getSuperTables getSuperTypes getTablePrivileges getTableTypes getTables getTypeInfo getUDTs "
                + "getVersionColumns")
        .named("the wrapped one", "getConnection")
        .named(
            "neither: of the driver, of the connection, or of the server's release",
            "allProceduresAreCallable allTablesAreSelectable autoCommitFailureClosesAllResultSets "
                + "dataDefinitionCausesTransactionCommit dataDefinitionIgnoredInTransactions deletesAreDetected "
                + "doesMaxRowSizeIncludeBlobs generatedKeyAlwaysReturned getCatalogSeparator getCatalogTerm "
                + "getDatabaseMajorVersion getDatabaseMinorVersion getDatabaseProductName "
                + "getDatabaseProductVersion getDefaultTransactionIsolation getDriverMajorVersion "
                + "getDriverMinorVersion getDriverName getDriverVersion getExtraNameCharacters "
                + "getIdentifierQuoteString getJDBCMajorVersion getJDBCMinorVersion getMaxBinaryLiteralLength "
                + "getMaxCatalogNameLength getMaxCharLiteralLength getMaxColumnNameLength getMaxColumnsInGroupBy "
                + "getMaxColumnsInIndex getMaxColumnsInOrderBy getMaxColumnsInSelect getMaxColumnsInTable "
                + "getMaxConnections getMaxCursorNameLength getMaxIndexLength getMaxLogicalLobSize "
                + "getMaxProcedureNameLength getMaxRowSize getMaxSchemaNameLength getMaxStatementLength "
                + "getMaxStatements getMaxTableNameLength getMaxTablesInSelect getMaxUserNameLength "
                + "getNumericFunctions getProcedureTerm getResultSetHoldability getRowIdLifetime getSQLKeywords "
                + "getSQLStateType getSchemaTerm getSearchStringEscape getStringFunctions getSystemFunctions "
                + "getTimeDateFunctions getURL getUserName insertsAreDetected isCatalogAtStart isReadOnly "
                + "locatorsUpdateCopy nullPlusNonNullIsNull nullsAreSortedAtEnd nullsAreSortedAtStart "
                + "nullsAreSortedHigh nullsAreSortedLow othersDeletesAreVisible othersInsertsAreVisible "
                + "othersUpdatesAreVisible ownDeletesAreVisible ownInsertsAreVisible ownUpdatesAreVisible "
                + "storesLowerCaseIdentifiers storesLowerCaseQuotedIdentifiers storesMixedCaseIdentifiers "
                + "storesMixedCaseQuotedIdentifiers storesUpperCaseIdentifiers storesUpperCaseQuotedIdentifiers "
                + "supportsANSI92EntryLevelSQL supportsANSI92FullSQL supportsANSI92IntermediateSQL "
                + "supportsAlterTableWithAddColumn supportsAlterTableWithDropColumn supportsBatchUpdates "
                + "supportsCatalogsInDataManipulation supportsCatalogsInIndexDefinitions "
                + "supportsCatalogsInPrivilegeDefinitions supportsCatalogsInProcedureCalls "
                + "supportsCatalogsInTableDefinitions supportsColumnAliasing supportsConvert "
                + "supportsCoreSQLGrammar supportsCorrelatedSubqueries "
                + "supportsDataDefinitionAndDataManipulationTransactions supportsDataManipulationTransactionsOnly "
                + "supportsDifferentTableCorrelationNames supportsExpressionsInOrderBy supportsExtendedSQLGrammar "
                + "supportsFullOuterJoins supportsGetGeneratedKeys supportsGroupBy supportsGroupByBeyondSelect "
                + "supportsGroupByUnrelated supportsIntegrityEnhancementFacility supportsLikeEscapeClause "
                + "supportsLimitedOuterJoins supportsMinimumSQLGrammar supportsMixedCaseIdentifiers "
                + "supportsMixedCaseQuotedIdentifiers supportsMultipleOpenResults supportsMultipleResultSets "
                + "supportsMultipleTransactions supportsNamedParameters supportsNonNullableColumns "
                + "supportsOpenCursorsAcrossCommit supportsOpenCursorsAcrossRollback "
                + "supportsOpenStatementsAcrossCommit supportsOpenStatementsAcrossRollback "
                + "supportsOrderByUnrelated supportsOuterJoins supportsPositionedDelete supportsPositionedUpdate "
                + "supportsRefCursors supportsResultSetConcurrency supportsResultSetHoldability "
                + "supportsResultSetType supportsSavepoints supportsSchemasInDataManipulation "
                + "supportsSchemasInIndexDefinitions supportsSchemasInPrivilegeDefinitions "
                + "supportsSchemasInProcedureCalls supportsSchemasInTableDefinitions supportsSelectForUpdate "
                + "supportsSharding supportsStatementPooling supportsStoredFunctionsUsingCallSyntax "
                + "supportsStoredProcedures supportsSubqueriesInComparisons supportsSubqueriesInExists "
                + "supportsSubqueriesInIns supportsSubqueriesInQuantifieds supportsTableCorrelationNames "
                + "supportsTransactionIsolationLevel supportsTransactions supportsUnion supportsUnionAll "
                + "updatesAreDetected usesLocalFilePerTable usesLocalFiles")
        .differences()).isEmpty();
    assertThat(Inventory.of(ResultSetMetaData.class).without(Wrapper.class)
        .named("waits", "getColumnTypeName getTableName isAutoIncrement isNullable")
        .named(
            "came with the result",
            "getCatalogName getColumnClassName getColumnCount getColumnDisplaySize getColumnLabel "
                + "getColumnName getColumnType getPrecision getScale getSchemaName "
                + "isCaseSensitive isCurrency isDefinitelyWritable isReadOnly isSearchable isSigned isWritable")
        .differences()).isEmpty();
    assertThat(Inventory.of(PGResultSetMetaData.class)
        .named("waits", "getBaseColumnName getBaseSchemaName getBaseTableName")
        .named("came with the result", "getFormat")
        .differences()).isEmpty();
  }

  @Test
  void statement() {
    assertThat(Inventory.of(Statement.class).without(Wrapper.class)
        .named(
            "records and waits",
            "execute executeBatch executeLargeBatch executeLargeUpdate executeQuery executeUpdate "
                + "addBatch clearBatch")
        .named("gives a result", "getResultSet getGeneratedKeys")
        .named("the wrapped one", "getConnection")
        .named(
            "neither",
            "cancel clearWarnings close closeOnCompletion enquoteIdentifier enquoteLiteral "
                + "enquoteNCharLiteral getFetchDirection getFetchSize getLargeMaxRows getLargeUpdateCount "
                + "getMaxFieldSize getMaxRows getMoreResults getQueryTimeout getResultSetConcurrency "
                + "getResultSetHoldability getResultSetType getUpdateCount getWarnings isCloseOnCompletion "
                + "isClosed isPoolable isSimpleIdentifier setCursorName setEscapeProcessing setFetchDirection "
                + "setFetchSize setLargeMaxRows setMaxFieldSize setMaxRows setPoolable setQueryTimeout")
        .differences()).isEmpty();
    assertThat(Inventory.of(PreparedStatement.class).without(Statement.class)
        .named("of parameters, which are the driver's", "clearParameters")
        .named("a large object is written in the transaction of its statement", "setBlob setClob setNClob")
        .named(
            "a parameter",
            "setArray setAsciiStream setBigDecimal setBinaryStream setBoolean setByte setBytes "
                + "setCharacterStream setDate setDouble setFloat setInt setLong setNCharacterStream setNString "
                + "setNull setObject setRef setRowId setSQLXML setShort setString setTime setTimestamp setURL "
                + "setUnicodeStream")
        .named("waits", "getMetaData getParameterMetaData")
        .differences()).isEmpty();
    assertThat(Inventory.of(CallableStatement.class).without(PreparedStatement.class)
        .named("may fetch from a cursor", "getObject")
        .named(
            "refused: the driver has none",
            "getBlob getClob getNClob getNCharacterStream getNString getRef getRowId getURL "
                + "getCharacterStream")
        .named(
            "came with the call",
            "getArray getBigDecimal getBoolean getByte getBytes getDate getDouble getFloat getInt "
                + "getLong getSQLXML getShort getString getTime getTimestamp registerOutParameter wasNull")
        .differences()).isEmpty();
  }

  @Test
  void result() {
    assertThat(Inventory.of(ResultSet.class).without(Wrapper.class)
        .named("writes", "deleteRow insertRow updateRow")
        .named("reads again", "refreshRow")
        .named(
            "may be fetched in parts",
            "absolute afterLast beforeFirst first isAfterLast isLast last next previous relative")
        .named("may fetch from a cursor", "getObject")
        .named("large objects", "getBlob getClob getNClob")
        .named("the wrapped one", "getStatement")
        .named("goes round by its own result's statement, as the page says", "getArray")
        .named(
            "came with the result",
            "cancelRowUpdates clearWarnings close findColumn getAsciiStream getBigDecimal "
                + "getBinaryStream getBoolean getByte getBytes getCharacterStream getConcurrency getCursorName "
                + "getDate getDouble getFetchDirection getFetchSize getFloat getHoldability getInt getLong "
                + "getMetaData getNCharacterStream getNString getRef getRow getRowId getSQLXML getShort "
                + "getString getTime getTimestamp getType getURL getUnicodeStream getWarnings isBeforeFirst "
                + "isClosed isFirst moveToCurrentRow moveToInsertRow rowDeleted rowInserted rowUpdated "
                + "setFetchDirection setFetchSize wasNull")
        .named(
            "nothing is written before updateRow or insertRow",
            "updateArray updateAsciiStream updateBigDecimal updateBinaryStream updateBlob updateBoolean "
                + "updateByte updateBytes updateCharacterStream updateClob updateDate updateDouble updateFloat "
                + "updateInt updateLong updateNCharacterStream updateNClob updateNString updateNull "
                + "updateObject updateRef updateRowId updateSQLXML updateShort updateString updateTime "
                + "updateTimestamp")
        .differences()).isEmpty();
    assertThat(Inventory.of(Blob.class)
        .named("writes", "setBinaryStream setBytes truncate")
        .named("waits", "getBinaryStream getBytes length position")
        .named("neither", "free")
        .differences()).isEmpty();
    assertThat(Inventory.of(Clob.class)
        .named("writes", "setAsciiStream setCharacterStream setString truncate")
        .named("waits", "getAsciiStream getCharacterStream getSubString length position")
        .named("neither", "free")
        .differences()).isEmpty();
  }
}
