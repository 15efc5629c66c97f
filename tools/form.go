package tools

// Form is what a call asks the person whose turn it is, instead of an approval: one question after the other. Its
// text, and that of the choices, is the model's.
type Form struct {
	Questions []FormQuestion `json:"questions"`
}

// FormKind is what a question is answered with.
type FormKind string

// Kinds of questions.
const (
	ChoiceQuestion FormKind = "choice" // one of Choices or, with Several, any number of them; other words are taken too
	TextQuestion   FormKind = "text"
	DateQuestion   FormKind = "date" // a day, or a day with a time
)

// FormQuestion is one question of a Form.
type FormQuestion struct {
	Text    string   `json:"text"`
	Kind    FormKind `json:"kind"`
	Choices []string `json:"choices,omitempty"`
	Several bool     `json:"several,omitempty"`
}

// FormAnswer is the answer to one question. The zero value says that it was skipped.
type FormAnswer struct {
	Chosen []string `json:"chosen,omitempty"` // of Choices
	Text   string   `json:"text,omitempty"`   // in the person's own words
	Day    string   `json:"day,omitempty"`    // of a DateQuestion: 2026-12-24, with a time 2026-12-24T18:00:00+01:00
	Until  string   `json:"until,omitempty"`  // the last day, if the answer is several days from Day on
}

// FormState is how a Form has ended.
type FormState string

// How a Form can end.
const (
	FormAnswered FormState = "answered"
	FormDeclined FormState = "declined" // the person does not want to answer
	FormExpired  FormState = "expired"  // nobody answered in time
)

// FormReply is what came of a Form.
type FormReply struct {
	State   FormState    `json:"state"`
	Answers []FormAnswer `json:"answers,omitempty"` // in the order of the questions; fewer if it has ended before
}
