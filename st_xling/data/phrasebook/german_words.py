"""German lexicon.

Nouns: gender | nominative | accusative and dative singular | plural | dative plural.
Verbs: infinitive | ich | du | er | participle | auxiliary | preterite | particle.
"""

from st_xling.data.phrasebook.tables import table, words

NOUNS = table("""
    teacher: m | Lehrer | Lehrer | Lehrer | Lehrern
    doctor: m | Arzt | Arzt | Ärzte | Ärzten
    farmer: m | Bauer | Bauern | Bauern | Bauern
    cook: m | Koch | Koch | Köche | Köchen
    nurse: f | Krankenschwester | Krankenschwester | Krankenschwestern | Krankenschwestern
    driver: m | Fahrer | Fahrer | Fahrer | Fahrern
    painter: f | Malerin | Malerin | Malerinnen | Malerinnen
    tourist: m | Tourist | Touristen | Touristen | Touristen
    man: m | Mann | Mann | Männer | Männern
    woman: f | Frau | Frau | Frauen | Frauen
    friend: m | Freund | Freund | Freunde | Freunden
    neighbour: f | Nachbarin | Nachbarin | Nachbarinnen | Nachbarinnen
    student: m | Schüler | Schüler | Schüler | Schülern
    child: n | Kind | Kind | Kinder | Kindern
    boy: m | Junge | Jungen | Jungen | Jungen
    girl: n | Mädchen | Mädchen | Mädchen | Mädchen
    mother: f | Mutter | Mutter | Mütter | Müttern
    father: m | Vater | Vater | Väter | Vätern
    grandmother: f | Großmutter | Großmutter | Großmütter | Großmüttern
    grandfather: m | Großvater | Großvater | Großväter | Großvätern
    uncle: m | Onkel | Onkel | Onkel | Onkeln
    aunt: f | Tante | Tante | Tanten | Tanten
    dog: m | Hund | Hund | Hunde | Hunden
    cat: f | Katze | Katze | Katzen | Katzen
    horse: n | Pferd | Pferd | Pferde | Pferden
    rabbit: n | Kaninchen | Kaninchen | Kaninchen | Kaninchen
    goat: f | Ziege | Ziege | Ziegen | Ziegen
    bird: m | Vogel | Vogel | Vögel | Vögeln
    pig: n | Schwein | Schwein | Schweine | Schweinen
    duck: f | Ente | Ente | Enten | Enten
    cow: f | Kuh | Kuh | Kühe | Kühen
    monkey: m | Affe | Affen | Affen | Affen
    elephant: m | Elefant | Elefanten | Elefanten | Elefanten
    bear: m | Bär | Bären | Bären | Bären
    book: n | Buch | Buch | Bücher | Büchern
    newspaper: f | Zeitung | Zeitung | Zeitungen | Zeitungen
    letter: m | Brief | Brief | Briefe | Briefen
    bag: f | Tasche | Tasche | Taschen | Taschen
    umbrella: m | Regenschirm | Regenschirm | Regenschirme | Regenschirmen
    hat: m | Hut | Hut | Hüte | Hüten
    shirt: n | Hemd | Hemd | Hemden | Hemden
    cup: f | Tasse | Tasse | Tassen | Tassen
    table: m | Tisch | Tisch | Tische | Tischen
    chair: m | Stuhl | Stuhl | Stühle | Stühlen
    bicycle: n | Fahrrad | Fahrrad | Fahrräder | Fahrrädern
    car: n | Auto | Auto | Autos | Autos
    pencil: m | Bleistift | Bleistift | Bleistifte | Bleistiften
    phone: n | Telefon | Telefon | Telefone | Telefonen
    key: m | Schlüssel | Schlüssel | Schlüssel | Schlüsseln
    painting: n | Gemälde | Gemälde | Gemälde | Gemälden
    camera: f | Kamera | Kamera | Kameras | Kameras
    clock: f | Uhr | Uhr | Uhren | Uhren
    lamp: f | Lampe | Lampe | Lampen | Lampen
    flower: f | Blume | Blume | Blumen | Blumen
    box: f | Kiste | Kiste | Kisten | Kisten
    window: n | Fenster | Fenster | Fenster | Fenstern
    door: f | Tür | Tür | Türen | Türen
    house: n | Haus | Haus | Häuser | Häusern
    apple: m | Apfel | Apfel | Äpfel | Äpfeln
    pear: f | Birne | Birne | Birnen | Birnen
    tomato: f | Tomate | Tomate | Tomaten | Tomaten
    banana: f | Banane | Banane | Bananen | Bananen
    orange: f | Orange | Orange | Orangen | Orangen
    carrot: f | Karotte | Karotte | Karotten | Karotten
    egg: n | Ei | Ei | Eier | Eiern
    cake: m | Kuchen | Kuchen | Kuchen | Kuchen
    sandwich: n | Sandwich | Sandwich | Sandwiches | Sandwiches
    coffee: m | Kaffee | Kaffee | Kaffees | Kaffees
    tea: m | Tee | Tee | Tees | Tees
    juice: m | Saft | Saft | Säfte | Säften
    school: f | Schule | Schule | Schulen | Schulen
    library: f | Bibliothek | Bibliothek | Bibliotheken | Bibliotheken
    museum: n | Museum | Museum | Museen | Museen
    theatre: n | Theater | Theater | Theater | Theatern
    market: m | Markt | Markt | Märkte | Märkten
    factory: f | Fabrik | Fabrik | Fabriken | Fabriken
    station: m | Bahnhof | Bahnhof | Bahnhöfe | Bahnhöfen
    airport: m | Flughafen | Flughafen | Flughäfen | Flughäfen
    hospital: n | Krankenhaus | Krankenhaus | Krankenhäuser | Krankenhäusern
    restaurant: n | Restaurant | Restaurant | Restaurants | Restaurants
    hotel: n | Hotel | Hotel | Hotels | Hotels
    park: m | Park | Park | Parks | Parks
    garden: m | Garten | Garten | Gärten | Gärten
    village: n | Dorf | Dorf | Dörfer | Dörfern
    beach: m | Strand | Strand | Strände | Stränden
    kitchen: f | Küche | Küche | Küchen | Küchen
""")

# Where things happen at a place; "in" for those not listed.
AT = {"market": "auf", "station": "an", "airport": "an", "beach": "an"}

# Adjectives as said of something, and the stem to which attributive endings are added.
ADJECTIVES = table("""
    young: jung | jung
    aged: alt | alt
    kind: freundlich | freundlich
    clever: klug | klug
    famous: berühmt | berühmt
    rich: reich | reich
    lazy: faul | faul
    strong: stark | stark
    polite: höflich | höflich
    tired: müde | müd
    nervous: nervös | nervös
    happy: glücklich | glücklich
    sad: traurig | traurig
    angry: wütend | wütend
    big: groß | groß
    small: klein | klein
    white: weiß | weiß
    black: schwarz | schwarz
    brown: braun | braun
    red: rot | rot
    blue: blau | blau
    green: grün | grün
    yellow: gelb | gelb
    new: neu | neu
    old: alt | alt
    thick: dick | dick
    expensive: teuer | teur
    cheap: billig | billig
    beautiful: schön | schön
    clean: sauber | sauber
    dirty: schmutzig | schmutzig
    heavy: schwer | schwer
    fresh: frisch | frisch
    sweet: süß | süß
    ripe: reif | reif
    delicious: köstlich | köstlich
    hot: heiß | heiß
    cold: kalt | kalt
    modern: modern | modern
    quiet: ruhig | ruhig
""")

VERBS = table("""
    buy: kaufen | kaufe | kaufst | kauft | gekauft | haben | kaufte
    sell: verkaufen | verkaufe | verkaufst | verkauft | verkauft | haben | verkaufte
    eat: essen | esse | isst | isst | gegessen | haben | aß
    drink: trinken | trinke | trinkst | trinkt | getrunken | haben | trank
    read: lesen | lese | liest | liest | gelesen | haben | las
    write: schreiben | schreibe | schreibst | schreibt | geschrieben | haben | schrieb
    look_for: suchen | suche | suchst | sucht | gesucht | haben | suchte
    find: finden | finde | findest | findet | gefunden | haben | fand
    lose: verlieren | verliere | verlierst | verliert | verloren | haben | verlor
    see: sehen | sehe | siehst | sieht | gesehen | haben | sah
    wash: waschen | wasche | wäschst | wäscht | gewaschen | haben | wusch
    carry: tragen | trage | trägst | trägt | getragen | haben | trug
    repair: reparieren | repariere | reparierst | repariert | repariert | haben | reparierte
    draw: zeichnen | zeichne | zeichnest | zeichnet | gezeichnet | haben | zeichnete
    open: machen | mache | machst | macht | gemacht | haben | machte | auf
    close: machen | mache | machst | macht | gemacht | haben | machte | zu
    visit: besuchen | besuche | besuchst | besucht | besucht | haben | besuchte
    visit_place: besichtigen | besichtige | besichtigst | besichtigt | besichtigt | haben | besichtigte
    clean: putzen | putze | putzt | putzt | geputzt | haben | putzte
    invite: laden | lade | lädst | lädt | geladen | haben | lud | ein
    call: rufen | rufe | rufst | ruft | gerufen | haben | rief | an
    help: helfen | helfe | hilfst | hilft | geholfen | haben | half
    greet: begrüßen | begrüße | begrüßt | begrüßt | begrüßt | haben | begrüßte
    watch: beobachten | beobachte | beobachtest | beobachtet | beobachtet | haben | beobachtete
    chase: jagen | jage | jagst | jagt | gejagt | haben | jagte
    feed_on: fressen | fresse | frisst | frisst | gefressen | haben | fraß
    give: geben | gebe | gibst | gibt | gegeben | haben | gab
    send: schicken | schicke | schickst | schickt | geschickt | haben | schickte
    bring: bringen | bringe | bringst | bringt | gebracht | haben | brachte
    sell_to: verkaufen | verkaufe | verkaufst | verkauft | verkauft | haben | verkaufte
    go: gehen | gehe | gehst | geht | gegangen | sein | ging
    walk: gehen | gehe | gehst | geht | gegangen | sein | ging
    drive: fahren | fahre | fährst | fährt | gefahren | sein | fuhr
    run: rennen | renne | rennst | rennt | gerannt | sein | rannte
    come_back: kommen | komme | kommst | kommt | gekommen | sein | kam | zurück
    sleep: schlafen | schlafe | schläfst | schläft | geschlafen | haben | schlief
    sing: singen | singe | singst | singt | gesungen | haben | sang
    dance: tanzen | tanze | tanzt | tanzt | getanzt | haben | tanzte
    work: arbeiten | arbeite | arbeitest | arbeitet | gearbeitet | haben | arbeitete
    play: spielen | spiele | spielst | spielt | gespielt | haben | spielte
    study: lernen | lerne | lernst | lernt | gelernt | haben | lernte
    cook_meals: kochen | koche | kochst | kocht | gekocht | haben | kochte
    wait: warten | warte | wartest | wartet | gewartet | haben | wartete
    laugh: lachen | lache | lachst | lacht | gelacht | haben | lachte
    cry: weinen | weine | weinst | weint | geweint | haben | weinte
    arrive: kommen | komme | kommst | kommt | gekommen | sein | kam | an
    say: sagen | sage | sagst | sagt | gesagt | haben | sagte
    think: denken | denke | denkst | denkt | gedacht | haben | dachte
    know: wissen | weiß | weißt | weiß | gewusst | haben | wusste
    believe: glauben | glaube | glaubst | glaubt | geglaubt | haben | glaubte
    be: sein | bin | bist | ist | gewesen | sein | war
    exist: geben | gebe | gibst | gibt | gegeben | haben | gab
    have: haben | habe | hast | hat
    future: werden | werde | wirst | wird
    want: wollen | will | willst | will
    can: können | kann | kannst | kann
    must: müssen | muss | musst | muss
""")

TIMES = words("""
    yesterday: gestern
    last_week: letzte Woche
    last_year: letztes Jahr
    this_morning: heute Morgen
    last_night: gestern Abend
    two_days_ago: vor zwei Tagen
    now: jetzt
    at_the_moment: im Moment
    every_day: jeden Tag
    every_morning: jeden Morgen
    every_evening: jeden Abend
    every_monday: jeden Montag
    every_week: jede Woche
    tomorrow: morgen
    next_week: nächste Woche
    next_year: nächstes Jahr
    tonight: heute Abend
    day_after_tomorrow: übermorgen
    today: heute
""")

NUMBERS = ("", "", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun")
PRONOUNS = {"i": "ich", "you": "du", "he": "er", "she": "sie", "we": "wir", "they": "sie"}
POSSESSIVES = {"my": "mein", "your": "dein", "our": "unser"}
