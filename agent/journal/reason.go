package journal

// Reasons of an outcome that is no answer, and of EndEntry.Reason.
const (
	ReasonStopped  = "stopped"  // a person said stop
	ReasonGone     = "gone"     // nothing reaches the chat any more: nobody is told
	ReasonLimit    = "limit"    // max_tool_iterations reached
	ReasonLoop     = "loop"     // the same result three times
	ReasonContext  = "context"  // the conversation fills the model's window
	ReasonBudget   = "budget"   // a quota is used up; Outcome.Text is its sentence
	ReasonModel    = "model"    // the model refuses the request for good
	ReasonKey      = "key"      // the model refuses our key
	ReasonEmpty    = "empty"    // the model said nothing
	ReasonRefusal  = "refusal"  // the vendor's filter ended the answer
	ReasonGivenUp  = "given_up" // the model stayed away for too long
	ReasonOvertime = "overtime" // the model was still answering when the time of a call was over
	ReasonOversize = "oversize" // the model's answer was larger than anything that is taken in
	ReasonInternal = "internal" // a fault of ours
)

// ReasonLength is the Reason of an answer, or of a wish to call tools, that the token limit cut.
const ReasonLength = "length"
