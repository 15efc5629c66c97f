package texts

import "github.com/zephbot/zephbot/policy/act"

func german() *book {
	b := english()
	germanFiles(b)
	b.stopped, b.stoppedNothing = "Angehalten.", "Angehalten, bevor etwas gesagt war."
	b.limit = count{
		"Ich habe nach %d Schritt ohne Ergebnis angehalten. Mit *weiter* mache ich weiter.",
		"Ich habe nach %d Schritten ohne Ergebnis angehalten. Mit *weiter* mache ich weiter.",
	}
	b.loop = "Dreimal kam dasselbe heraus, darum habe ich angehalten, statt im Kreis zu laufen: %s"
	b.loopMute = "Dreimal kam dasselbe heraus, darum habe ich angehalten, statt im Kreis zu laufen."
	b.gone = "Beendet, weil ich blockiert oder aus dem Chat entfernt wurde."
	b.context = "Dieses Gespräch ist zu lang geworden, um es fortzusetzen. /new beginnt ein neues; was wichtig ist, kann dort noch einmal gesagt werden."
	b.modelRefused = "Das Modell lehnt diese Anfrage ab, darum habe ich keine Antwort. Der Betreiber sieht den Grund im Protokoll. (Anfrage %s)"
	b.key = "Das Modell nimmt meinen Schlüssel nicht an, darum kann ich nicht antworten. Der Betreiber muss nachsehen. (Anfrage %s)"
	b.empty = "Das Modell gab eine leere Antwort. Bitte noch einmal fragen, vielleicht mit anderen Worten."
	b.refusal = "Das Modell möchte darauf nicht antworten."
	b.givenUp = "Das Modell hat 10 Minuten lang nicht geantwortet, darum habe ich aufgegeben. Bitte später noch einmal schicken. (Anfrage %s)"
	b.overtime = "Das Modell schrieb noch, als seine Zeit für eine Antwort um war, darum habe ich es beendet. Bitte um weniger auf einmal bitten. (Anfrage %s)"
	b.oversize = "Die Antwort des Modells war viel größer, als ich aufnehmen kann, darum habe ich sie beendet. Bitte um weniger auf einmal bitten. (Anfrage %s)"
	b.internal = "Bei mir ist etwas schiefgegangen; ich konnte das nicht beenden. Der Betreiber sieht den Grund im Protokoll. (Anfrage %s)"
	b.cut = "*(Die Antwort wurde an ihrer Längengrenze abgeschnitten. Mit* weiter *kommt der Rest.)*"
	b.unstored = "Ich kann gerade nichts speichern. Deine Nachricht geht nicht verloren: Ich bekomme sie noch einmal und antworte, sobald es wieder geht."
	b.outOfOrder = "⚠ Meine Datenbank arbeitet nicht: %s. Nichts geht verloren und nichts wird ausgeführt; ich mache von selbst weiter, sobald es wieder geht."
	b.away = "Das Modell antwortet gerade nicht. Deine Nachricht ist aufgehoben; ich versuche es 10 Minuten lang weiter. (Anfrage %s)"
	b.behind = "Dazu komme ich, wenn oben entschieden ist. /stop verwirft es."
	b.nothing = "In dieser Nachricht ist nichts, womit ich arbeiten kann. Bitte Text schicken."
	b.broken = "Diese Nachricht konnte ich wegen eines Fehlers bei mir nicht bearbeiten. Der Betreiber sieht den Grund im Protokoll. (Anfrage %s)"
	b.resent = "(nach einem Verbindungsproblem noch einmal gesendet)"
	b.lost = count{"⚠ %d frühere Nachricht von mir ist vielleicht nicht angekommen. Frag noch einmal, wenn sie dir fehlt.", "⚠ %d frühere Nachrichten von mir sind vielleicht nicht angekommen. Frag noch einmal, wenn sie dir fehlen."}
	b.noTopic = "(Das Thema, zu dem dies gehört, ist geschlossen oder gelöscht, darum antworte ich hier.)"
	b.asFile = "Telegram nimmt das nicht als Nachricht an, darum kommt es hier als Datei."
	b.notKept = "%s hat die Datei %s gemacht. Sie lässt sich hier nicht aufbewahren, darum kann ich sie nicht schicken."
	b.unsendable = "Ich habe dir etwas zu sagen, das Telegram in keiner Form annimmt. Bitte mich, es anders zu sagen."
	b.thinking, b.step = "⏳ Ich denke nach", "%d von %d Schritten"
	b.verbs = map[act.Verb]string{
		act.Run: "Führe aus: %s", act.Read: "Lese %s", act.Write: "Schreibe %s", act.Edit: "Ändere %s", act.Search: "Durchsuche %s", act.Find: "Suche %s",
		act.List: "Liste %s auf", act.Create: "Lege %s an", act.Delete: "Lösche %s", act.Move: "Verschiebe %s", act.Copy: "Kopiere %s", act.Fetch: "Hole %s", act.Send: "Sende %s",
		"": "Benutze %s",
	}
	germanApprovals(b)
	b.quota = germanQuotas()
	germanCommands(b)
	b.strangerPrivate = "Ich spreche nur mit Leuten auf meiner Liste. Deine Nummer ist %s; gib sie der Person, die mich betreibt."
	b.people, b.refusals = germanPeople(), germanWhy()
	b.groupUnlisted = "Für diese Gruppe bin ich nicht eingerichtet. Ihre Nummer ist %s; gib sie der Person, die mich betreibt."
	b.seconds = count{"%d Sekunde", "%d Sekunden"}
	b.minutes = count{"%d Minute", "%d Minuten"}
	b.hours = count{"%d Stunde", "%d Stunden"}
	return b
}

func germanApprovals(b *book) {
	b.reasons, b.someReason = germanReasons, "Eine Regel verlangt hier eine Entscheidung."
	b.mayI, b.inWorkspace, b.why = "✋ Darf ich das ausführen?", "im Arbeitsbereich dieses Chats", "Warum ich frage: %s"
	b.soFar, b.steps, b.expires = "Bisher: %s, %s", count{"%d Schritt", "%d Schritte"}, "läuft ab um %s · oder sende /approve %s"
	b.longFile = "Der ganze Text steht in der Datei oben: %d Zeilen, SHA-256 %s. Erlaubt wird, was in der Datei steht."
	b.needs = "Nötige Freigaben: %d, ohne die Person, die gefragt hat; bisher %d."
	b.voteOthers = "Das müssen mehrere freigeben, und die Person, die gefragt hat, zählt nicht mit."
	b.blanks, b.emptyLines = "%d Leerzeichen", "%d leere Zeilen"
	b.invisible, b.lookAlike = "⚠ Enthält unsichtbare Zeichen: %d", "⚠ Enthält Zeichen, die wie andere aussehen: %d"
	b.once, b.session, b.deny = "Einmal erlauben", "Für dieses Gespräch erlauben", "Ablehnen"
	b.oneQuestion = "Eine Frage mit diesem Namen gibt es hier nicht. Offen ist %s."
	b.policyHead, b.policyRule = "Geltende Regeln:", "Regel: %s"
	b.policyHelp = "/policy status zeigt die geltenden Regeln; /policy rules zeigt, was für immer erlaubt wurde, und widerruft es; /policy check WERKZEUG {\"…\":\"…\"} sagt, was sie entscheiden würden, etwa /policy check bash {\"command\":\"git push\"}"
	b.effects = map[string]string{"allow": "✅ Es würde laufen.", "ask": "✋ Es würde fragen.", "deny": "⛔ Es würde abgelehnt."}
	b.grants, b.models = germanGrants(), germanModels()
	b.always, b.storeHead, b.storeIt, b.back = "Immer…", "Diese Regel für diesen Chat speichern?", "Speichern", "Zurück"
	b.storeFoot = "Von da an läuft es, ohne zu fragen. Ein Verbot in der Konfiguration gilt weiter."
	b.adminsStore = "Nur ein Admin dieses Bots kann eine Regel speichern."
	b.approvedAlways = "✅ Für immer erlaubt von %s, %s"
	b.approved, b.approvedSession = "✅ Einmal erlaubt von %s, %s", "✅ Für dieses Gespräch erlaubt von %s, %s"
	b.denied, b.expired, b.withdrawn = "⛔ Abgelehnt von %s, %s", "⛔ Niemand hat rechtzeitig entschieden, %s", "⛔ Zurückgezogen, %s"
	b.stranger, b.asker = "Nur %s oder jemand mit Freigaberecht in diesem Chat kann das entscheiden.", "die Person, die gefragt hat,"
	b.already, b.unknownQuestion = "Schon entschieden: %s", "Diese Frage ist nicht mehr offen."
	b.notYourself, b.noQuestion = "Das muss jemand anderes freigeben als die Person, die gefragt hat.", "Hier wartet nichts auf eine Entscheidung."
	b.whichQuestion = "Hier sind mehrere Fragen offen. Welche ist gemeint: %s"
	b.decidedToast, b.votedToast = "Notiert.", "Notiert. Es fehlen noch %d."
	b.suspicious = "⚠ Ein Text von %s hat zuvor versucht, mir Anweisungen zu geben."
}

func germanCommands(b *book) {
	b.start = "Hallo%s. Ich bin ein Assistent, der nachsehen und mit Werkzeugen arbeiten kann. Schreib einfach, was du brauchst; bevor ich etwas ändere, frage ich. /help zeigt, was es sonst gibt."
	b.helpHead, b.helpAdmin = "Schreib mir in einfachen Worten. In einer Gruppe: erwähne mich oder antworte auf eine meiner Nachrichten.", "Für Admins:"
	b.unknown, b.unknownNear = "/%s kenne ich nicht. /help zeigt, was es gibt.", "/%s kenne ich nicht. War /%s gemeint?"
	germanServers(b)
	b.adminsOnly, b.notBuilt = "Das ist für Admins dieses Bots%s.", "/%s gibt es in dieser Version noch nicht."
	b.cleared, b.newTopic = "Erledigt. Dieses Gespräch habe ich vergessen.", "Ein neues Gespräch. Worum geht es?"
	b.nothingRuns, b.stopping = "Hier läuft nichts.", "Ich halte an."
	b.dropped = count{"%d wartende Nachricht verworfen", "%d wartende Nachrichten verworfen"}
	b.droppedQuestions = count{"%d Frage zurückgezogen", "%d Fragen zurückgezogen"}
	b.endedCommands = count{"%d Befehl im Hintergrund beendet", "%d Befehle im Hintergrund beendet"}
	b.status = germanStatus()
	b.toolsHead, b.toolsNone = "Werkzeuge in diesem Chat:", "In diesem Chat darf ich keine Werkzeuge benutzen."
	for name, words := range map[string]string{
		"people": "wer mit mir sprechen darf", "why": "warum etwas abgelehnt wurde", "admit": "jemanden zulassen", "remove": "das zurücknehmen",
		"help": "was du hier tun kannst", "new": "ein neues Gespräch beginnen", "clear": "dieses Gespräch vergessen und sein Werkzeug-Kontingent zurücksetzen",
		"stop": "anhalten und verwerfen, was wartet", "status": "was läuft und was wartet", "quota": "was du heute verbraucht hast",
		"mcp": "MCP-Server hinzufügen, zeigen und entfernen", "tools": "die Werkzeuge, die ich hier benutzen darf", "model": "das Modell dieses Gesprächs, und ein anderes", "approve": "eine Frage mit Ja beantworten",
		"deny": "eine Frage mit Nein beantworten", "start": "Hallo sagen", "policy": "die Regeln, und was sie entscheiden würden",
	} {
		b.commands[name] = [2]string{words, b.commands[name][1]}
	}
}

// germanServers is the part about tools that are blocked, and servers.
func germanServers(b *book) {
	b.blockedLeft, b.blockedElsewhere = "noch %s", "in einem anderen Gespräch"
	b.blockedEverywhere, b.blockedChat = "überall", "im Chat %s"
	b.toolBlocked = "%s ist zu oft gescheitert. Ich komme in diesem Gespräch %s lang ohne aus; ein Admin gibt es mit /tools unblock %s zurück."
	b.toolBlockedAdmins = "%s ist in %d von %d Aufrufen gescheitert. Es ist %s für %s abgeschaltet; /tools unblock %s gibt es zurück."
	b.toolsBlocked = "Gesperrt, weil sie zu oft scheiterten (/tools unblock NAME, Admins):"
	b.meant = "War %s gemeint?"
	b.unblocked, b.notBlocked = "%s darf wieder benutzt werden.", "%s ist nicht gesperrt."
	b.serversOff, b.serversHead = "Hier gibt es keinen MCP-Client.", "MCP-Server, die es gibt:"
	b.serversNone = "Kein MCP-Server. Admins fügen einen hinzu mit /mcp add ID BEFEHL… oder /mcp add ID URL."
	b.serversHelp = "/mcp list\n/mcp add ID BEFEHL… – startet ein Programm, zum Beispiel /mcp add files npx @modelcontextprotocol/server-filesystem /srv\n" +
		"/mcp add ID URL – verbindet mit einem Server im Netz\n/mcp tools ID\n/mcp restart ID\n/mcp signin ID – meldet an, wo ein Server das will\n/mcp accept ID – zeigt, was sich geändert hat, und wie es angenommen wird\n/mcp remove ID"
	b.serverConnecting, b.serverNone = "Verbinde mit %s …", "Es gibt keinen Server %s. /mcp list zeigt, welche es gibt."
	b.serverAccepted, b.serverNothing = "%s: so angenommen, wie sie jetzt sind: %s", "%s: nichts hat sich geändert, es gibt nichts anzunehmen."
	b.serverFailed = "%s geht nicht: %s"
	b.serverAway = "Der Server %s ist weg. Seine Werkzeuge fehlen, bis er wieder da ist; ich versuche es weiter."
	b.serverBack = "Der Server %s ist wieder da, mit %s."
	b.signInAgain = "Ich wurde neu gestartet, und die Adresse von vorhin gilt nicht mehr."
	b.late = "Ich war zu lange weg und habe das nicht getan. Sag es noch einmal, wenn du es noch willst."
	b.serverSignIn = "%s will eine Anmeldung. Öffne diese Adresse im Browser:\n%s\nEndet der Browser auf einer Seite, die nicht lädt, schick mir deren Adresse: /mcp signin %s ADRESSE"
	b.serverChanged = "Werkzeuge von %s haben sich geändert und sind zurückgezogen, bis Admins sie mit /mcp accept annehmen: %s"
	b.serverFresh = "%s hat neue Werkzeuge; sie warten, bis Admins sie mit /mcp accept annehmen: %s"
	b.serverHeld = "Die Anleitung von %s hat sich geändert und bleibt zurückgehalten, bis Admins sie mit /mcp accept annehmen."
	b.serverFits = "Dem Modell gezeigt: höchstens %d von %d Werkzeugen zugleich (alle Server teilen sich %d Tokens); die übrigen findet es durch Suchen"
	b.serverDropped = count{"%d Werkzeug wird nicht angeboten; /mcp tools sagt, warum", "%d Werkzeuge werden nicht angeboten; /mcp tools sagt, warum"}
	b.serverPending = "%s will von jetzt an so benutzt werden. Alles in seinen eigenen Worten:"
	b.serverWords, b.serverIsNew = "Anleitung", "neu"
	b.serverAccept = "Genau das annehmen: /mcp accept %s %s"
	b.serverLong, b.serverMore = "(ein Schema, das zu lang ist, um es zu zeigen)", "… %d weitere Zeilen werden nicht gezeigt."
	b.serverChat = "Programme werden hier nicht aus dem Chat hinzugefügt: mcp.chat_commands ist false. Wer den Bot betreibt, kann es auf true setzen oder den Server in [[mcp.servers]] eintragen."
	b.serverNotNow = "Hier kann niemand gefragt werden, also wurde nichts hinzugefügt."
	b.serverAdd = "Den MCP-Server %s hinzufügen"
	b.serverAddProgram, b.serverAddURL = "Programm: %s", "Adresse: %s"
	b.serverEnv, b.serverHolds = "Umgebung: %s", "gehalten durch: %s"
	b.serverStates = map[string]string{
		"connecting": "verbindet", "connected": "verbunden", "away": "weg, neuer Versuch läuft", "broken": "verbindet nicht", "stopped": "beendet",
	}
	b.serverTools = count{"%d Werkzeug", "%d Werkzeuge"}
	b.serverAdded = count{"verbunden, %d Werkzeug.", "verbunden, %d Werkzeuge."}
	b.serverRemoved = count{"entfernt, mit %d Werkzeug.", "entfernt, mit %d Werkzeugen."}
}
