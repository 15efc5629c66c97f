package tracing

import (
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// Attributes of OpenTelemetry's semantic conventions: general ones, and those for generative AI, which are still in
// development there. They are constants of ours, so that a new version of the library renames nothing.
const (
	serviceName     = "service.name"
	serviceVersion  = "service.version"
	serviceInstance = "service.instance.id"
	errorType       = "error.type"
	httpStatus      = "http.response.status_code"

	aiOperation     = "gen_ai.operation.name"
	aiAgent         = "gen_ai.agent.name"
	aiConversation  = "gen_ai.conversation.id"
	aiProvider      = "gen_ai.provider.name"
	aiRequestModel  = "gen_ai.request.model"
	aiResponseModel = "gen_ai.response.model"
	aiInput         = "gen_ai.usage.input_tokens"
	aiCached        = "gen_ai.usage.cache_read.input_tokens"
	aiOutput        = "gen_ai.usage.output_tokens"
	aiTool          = "gen_ai.tool.name"
	aiToolCall      = "gen_ai.tool.call.id"
	aiToolType      = "gen_ai.tool.type"
)

// Attributes of ours.
const (
	ourTurn     = "zephbot.turn"
	ourChannel  = "zephbot.channel"
	ourOutcome  = "zephbot.outcome"
	ourReason   = "zephbot.reason" // why a turn ended without an answer
	ourSteps    = "zephbot.steps"
	ourCalls    = "zephbot.calls"
	ourUSD      = "zephbot.usd"
	ourProvider = "zephbot.provider" // its name in the configuration
	ourAttempt  = "zephbot.attempt"
	ourStage    = "zephbot.stage"
	ourServer   = "zephbot.mcp_server"
	ourEffect   = "zephbot.effect" // of the policy: allow, ask, deny
	ourCached   = "zephbot.cached"
	ourBytes    = "zephbot.bytes" // of a result or message
	ourDecision = "zephbot.decision"
	ourScope    = "zephbot.scope"
	ourRow      = "zephbot.row"
	ourPurpose  = "zephbot.purpose"
	ourAgent    = "zephbot.agent" // the sub-agent that made a call
)

// fail marks a span as failed; "" = it is not.
func fail(span trace.Span, kind string) {
	if kind != "" {
		span.SetStatus(codes.Error, "")
		span.SetAttributes(attribute.String(errorType, kind))
	}
}
