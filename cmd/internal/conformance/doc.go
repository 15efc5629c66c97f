// Package conformance puts the MCP client before the official referee, @modelcontextprotocol/conformance: the client is
// the whole program with a scripted model that calls every tool it is offered once, and what the referee writes down is
// compared with a bar of our own, because its own takes a client that does nothing for a good one.
// docs/mcp-conformance.md says how to run it and what came of it; without ZEPH_MCP_CONFORMANCE the referee is skipped,
// and the driver is tested with a server of our own.
package conformance
