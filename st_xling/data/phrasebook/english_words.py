"""English lexicon: singular | plural; base | third person | past | -ing form."""

from st_xling.data.phrasebook.tables import table, words

NOUNS = table("""
    teacher: teacher | teachers
    doctor: doctor | doctors
    farmer: farmer | farmers
    cook: cook | cooks
    nurse: nurse | nurses
    driver: driver | drivers
    painter: painter | painters
    tourist: tourist | tourists
    man: man | men
    woman: woman | women
    friend: friend | friends
    neighbour: neighbour | neighbours
    student: student | students
    child: child | children
    boy: boy | boys
    girl: girl | girls
    mother: mother | mothers
    father: father | fathers
    grandmother: grandmother | grandmothers
    grandfather: grandfather | grandfathers
    uncle: uncle | uncles
    aunt: aunt | aunts
    dog: dog | dogs
    cat: cat | cats
    horse: horse | horses
    rabbit: rabbit | rabbits
    goat: goat | goats
    bird: bird | birds
    pig: pig | pigs
    duck: duck | ducks
    cow: cow | cows
    monkey: monkey | monkeys
    elephant: elephant | elephants
    bear: bear | bears
    book: book | books
    newspaper: newspaper | newspapers
    letter: letter | letters
    bag: bag | bags
    umbrella: umbrella | umbrellas
    hat: hat | hats
    shirt: shirt | shirts
    cup: cup | cups
    table: table | tables
    chair: chair | chairs
    bicycle: bicycle | bicycles
    car: car | cars
    pencil: pencil | pencils
    phone: phone | phones
    key: key | keys
    painting: painting | paintings
    camera: camera | cameras
    clock: clock | clocks
    lamp: lamp | lamps
    flower: flower | flowers
    box: box | boxes
    window: window | windows
    door: door | doors
    house: house | houses
    apple: apple | apples
    pear: pear | pears
    tomato: tomato | tomatoes
    banana: banana | bananas
    orange: orange | oranges
    carrot: carrot | carrots
    egg: egg | eggs
    cake: cake | cakes
    sandwich: sandwich | sandwiches
    coffee: coffee | coffees
    tea: tea | teas
    juice: juice | juices
    school: school | schools
    library: library | libraries
    museum: museum | museums
    theatre: theatre | theatres
    market: market | markets
    factory: factory | factories
    station: station | stations
    airport: airport | airports
    hospital: hospital | hospitals
    restaurant: restaurant | restaurants
    hotel: hotel | hotels
    park: park | parks
    garden: garden | gardens
    village: village | villages
    beach: beach | beaches
    kitchen: kitchen | kitchens
""")

# Where things happen at a place.
AT = words("""
    school: at
    library: in
    museum: in
    theatre: at
    market: at
    factory: in
    station: at
    airport: at
    hospital: in
    restaurant: in
    hotel: in
    park: in
    garden: in
    village: in
    beach: on
    kitchen: in
""")

ADJECTIVES = words("""
    young: young
    aged: old
    kind: kind
    clever: clever
    famous: famous
    rich: rich
    lazy: lazy
    strong: strong
    polite: polite
    tired: tired
    nervous: nervous
    happy: happy
    sad: sad
    angry: angry
    big: big
    small: small
    white: white
    black: black
    brown: brown
    red: red
    blue: blue
    green: green
    yellow: yellow
    new: new
    old: old
    thick: thick
    expensive: expensive
    cheap: cheap
    beautiful: beautiful
    clean: clean
    dirty: dirty
    heavy: heavy
    fresh: fresh
    sweet: sweet
    ripe: ripe
    delicious: delicious
    hot: hot
    cold: cold
    modern: modern
    quiet: quiet
""")

VERBS = table("""
    buy: buy | buys | bought | buying
    sell: sell | sells | sold | selling
    eat: eat | eats | ate | eating
    drink: drink | drinks | drank | drinking
    read: read | reads | read | reading
    write: write | writes | wrote | writing
    look_for: look for | looks for | looked for | looking for
    find: find | finds | found | finding
    lose: lose | loses | lost | losing
    see: see | sees | saw | seeing
    wash: wash | washes | washed | washing
    carry: carry | carries | carried | carrying
    repair: repair | repairs | repaired | repairing
    draw: draw | draws | drew | drawing
    open: open | opens | opened | opening
    close: close | closes | closed | closing
    visit: visit | visits | visited | visiting
    visit_place: visit | visits | visited | visiting
    clean: clean | cleans | cleaned | cleaning
    invite: invite | invites | invited | inviting
    call: call | calls | called | calling
    help: help | helps | helped | helping
    greet: greet | greets | greeted | greeting
    watch: watch | watches | watched | watching
    chase: chase | chases | chased | chasing
    feed_on: eat | eats | ate | eating
    give: give | gives | gave | giving
    send: send | sends | sent | sending
    bring: bring | brings | brought | bringing
    sell_to: sell | sells | sold | selling
    go: go | goes | went | going
    walk: walk | walks | walked | walking
    drive: drive | drives | drove | driving
    run: run | runs | ran | running
    come_back: come back | comes back | came back | coming back
    sleep: sleep | sleeps | slept | sleeping
    sing: sing | sings | sang | singing
    dance: dance | dances | danced | dancing
    work: work | works | worked | working
    play: play | plays | played | playing
    study: study | studies | studied | studying
    cook_meals: cook | cooks | cooked | cooking
    wait: wait | waits | waited | waiting
    laugh: laugh | laughs | laughed | laughing
    cry: cry | cries | cried | crying
    arrive: arrive | arrives | arrived | arriving
    say: say | says | said | saying
    think: think | thinks | thought | thinking
    know: know | knows | knew | knowing
    believe: believe | believes | believed | believing
""")

TIMES = words("""
    yesterday: yesterday
    last_week: last week
    last_year: last year
    this_morning: this morning
    last_night: last night
    two_days_ago: two days ago
    now: now
    at_the_moment: at the moment
    every_day: every day
    every_morning: every morning
    every_evening: every evening
    every_monday: every Monday
    every_week: every week
    tomorrow: tomorrow
    next_week: next week
    next_year: next year
    tonight: tonight
    day_after_tomorrow: the day after tomorrow
    today: today
""")

NUMBERS = ("", "", "two", "three", "four", "five", "six", "seven", "eight", "nine")
PRONOUNS = {"i": "I", "you": "you", "he": "he", "she": "she", "we": "we", "they": "they"}
