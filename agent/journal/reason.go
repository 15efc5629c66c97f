package journal

// Reasons of an outcome without an answer, and of EndEntry.Reason.
const (
	ReasonStopped   = "stopped"   // a person stopped the turn
	ReasonOvertaken = "overtaken" // a person's next message ended the turn
	ReasonGone      = "gone"      // the chat cannot be reached any more: nobody is told
	ReasonLimit     = "limit"     // max_tool_iterations reached
	ReasonLoop      = "loop"      // the same result three times
	ReasonContext   = "context"   // the conversation exceeds the model's window
	ReasonBudget    = "budget"    // a quota is used up; Outcome.Text is the sentence for the person
	ReasonModel     = "model"     // the model rejects the request permanently
	ReasonKey       = "key"       // the model rejects our key
	ReasonCredit    = "credit"    // our account at the provider has no money or quota left
	ReasonNoModel   = "no_model"  // the provider has no such model
	ReasonRegion    = "region"    // the provider does not serve our country
	ReasonAddress   = "address"   // what answers at the provider's address is no model server
	ReasonBusy      = "busy"      // the model was overloaded for too long
	ReasonEmpty     = "empty"     // the model returned nothing
	ReasonRefusal   = "refusal"   // the vendor's filter ended the answer
	ReasonGivenUp   = "given_up"  // the model was unavailable for too long
	ReasonOvertime  = "overtime"  // the model was still answering when the call timed out
	ReasonOversize  = "oversize"  // the model's answer exceeds the size limit
	ReasonInternal  = "internal"  // a fault of this service
)

// ReasonFiltered is the Reason of an answer that the vendor's filter broke off.
const ReasonFiltered = "filtered"

// ReasonLength is the Reason of an answer, or of a request to call tools, that was cut at the token limit.
const ReasonLength = "length"
