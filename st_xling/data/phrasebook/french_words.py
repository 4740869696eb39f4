"""French lexicon.

Nouns: gender | singular | plural.
Adjectives: masculine | feminine | masculine plural | feminine plural | masculine before a vowel, if different.
Verbs: je, tu, il, nous and ils forms | participle | auxiliary | stem of the future | infinitive | fixed complement.
"""

from st_xling.data.phrasebook.tables import table, words

NOUNS = table("""
    teacher: m | professeur | professeurs
    doctor: m | médecin | médecins
    farmer: m | fermier | fermiers
    cook: m | cuisinier | cuisiniers
    nurse: f | infirmière | infirmières
    driver: m | chauffeur | chauffeurs
    painter: f | peintre | peintres
    tourist: m | touriste | touristes
    man: m | homme | hommes
    woman: f | femme | femmes
    friend: m | ami | amis
    neighbour: f | voisine | voisines
    student: m | élève | élèves
    child: m | enfant | enfants
    boy: m | garçon | garçons
    girl: f | fille | filles
    mother: f | mère | mères
    father: m | père | pères
    grandmother: f | grand-mère | grands-mères
    grandfather: m | grand-père | grands-pères
    uncle: m | oncle | oncles
    aunt: f | tante | tantes
    dog: m | chien | chiens
    cat: m | chat | chats
    horse: m | cheval | chevaux
    rabbit: m | lapin | lapins
    goat: f | chèvre | chèvres
    bird: m | oiseau | oiseaux
    pig: m | cochon | cochons
    duck: m | canard | canards
    cow: f | vache | vaches
    monkey: m | singe | singes
    elephant: m | éléphant | éléphants
    bear: m | ours | ours
    book: m | livre | livres
    newspaper: m | journal | journaux
    letter: f | lettre | lettres
    bag: m | sac | sacs
    umbrella: m | parapluie | parapluies
    hat: m | chapeau | chapeaux
    shirt: f | chemise | chemises
    cup: f | tasse | tasses
    table: f | table | tables
    chair: f | chaise | chaises
    bicycle: m | vélo | vélos
    car: f | voiture | voitures
    pencil: m | crayon | crayons
    phone: m | téléphone | téléphones
    key: f | clé | clés
    painting: m | tableau | tableaux
    camera: m | appareil photo | appareils photo
    clock: f | horloge | horloges
    lamp: f | lampe | lampes
    flower: f | fleur | fleurs
    box: f | boîte | boîtes
    window: f | fenêtre | fenêtres
    door: f | porte | portes
    house: f | maison | maisons
    apple: f | pomme | pommes
    pear: f | poire | poires
    tomato: f | tomate | tomates
    banana: f | banane | bananes
    orange: f | orange | oranges
    carrot: f | carotte | carottes
    egg: m | œuf | œufs
    cake: m | gâteau | gâteaux
    sandwich: m | sandwich | sandwichs
    coffee: m | café | cafés
    tea: m | thé | thés
    juice: m | jus | jus
    school: f | école | écoles
    library: f | bibliothèque | bibliothèques
    museum: m | musée | musées
    theatre: m | théâtre | théâtres
    market: m | marché | marchés
    factory: f | usine | usines
    station: f | gare | gares
    airport: m | aéroport | aéroports
    hospital: m | hôpital | hôpitaux
    restaurant: m | restaurant | restaurants
    hotel: m | hôtel | hôtels
    park: m | parc | parcs
    garden: m | jardin | jardins
    village: m | village | villages
    beach: f | plage | plages
    kitchen: f | cuisine | cuisines
""")

# Where things happen at "the" place, and at any more particular one ("this", or with an adjective).
AT = table("""
    school: à | dans
    library: à | dans
    museum: à | dans
    theatre: à | dans
    market: à | sur
    factory: à | dans
    station: à | dans
    airport: à | dans
    hospital: à | dans
    restaurant: à | dans
    hotel: à | dans
    park: dans | dans
    garden: dans | dans
    village: dans | dans
    beach: sur | sur
    kitchen: dans | dans
""")

ADJECTIVES = table("""
    young: jeune | jeune | jeunes | jeunes
    aged: vieux | vieille | vieux | vieilles | vieil
    kind: gentil | gentille | gentils | gentilles
    clever: intelligent | intelligente | intelligents | intelligentes
    famous: célèbre | célèbre | célèbres | célèbres
    rich: riche | riche | riches | riches
    lazy: paresseux | paresseuse | paresseux | paresseuses
    strong: fort | forte | forts | fortes
    polite: poli | polie | polis | polies
    tired: fatigué | fatiguée | fatigués | fatiguées
    nervous: nerveux | nerveuse | nerveux | nerveuses
    happy: heureux | heureuse | heureux | heureuses
    sad: triste | triste | tristes | tristes
    angry: furieux | furieuse | furieux | furieuses
    big: grand | grande | grands | grandes
    small: petit | petite | petits | petites
    white: blanc | blanche | blancs | blanches
    black: noir | noire | noirs | noires
    brown: brun | brune | bruns | brunes
    red: rouge | rouge | rouges | rouges
    blue: bleu | bleue | bleus | bleues
    green: vert | verte | verts | vertes
    yellow: jaune | jaune | jaunes | jaunes
    new: nouveau | nouvelle | nouveaux | nouvelles | nouvel
    old: vieux | vieille | vieux | vieilles | vieil
    thick: épais | épaisse | épais | épaisses
    expensive: cher | chère | chers | chères
    cheap: bon marché | bon marché | bon marché | bon marché
    beautiful: beau | belle | beaux | belles | bel
    clean: propre | propre | propres | propres
    dirty: sale | sale | sales | sales
    heavy: lourd | lourde | lourds | lourdes
    fresh: frais | fraîche | frais | fraîches
    sweet: sucré | sucrée | sucrés | sucrées
    ripe: mûr | mûre | mûrs | mûres
    delicious: délicieux | délicieuse | délicieux | délicieuses
    hot: chaud | chaude | chauds | chaudes
    cold: froid | froide | froids | froides
    modern: moderne | moderne | modernes | modernes
    quiet: calme | calme | calmes | calmes
""")

# Adjectives that stand before their noun.
PREPOSED = frozenset(("young", "aged", "big", "small", "new", "old", "beautiful"))

VERBS = table("""
    buy: achète achètes achète achetons achètent | acheté | avoir | achèter | acheter
    sell: vends vends vend vendons vendent | vendu | avoir | vendr | vendre
    eat: mange manges mange mangeons mangent | mangé | avoir | manger | manger
    drink: bois bois boit buvons boivent | bu | avoir | boir | boire
    read: lis lis lit lisons lisent | lu | avoir | lir | lire
    write: écris écris écrit écrivons écrivent | écrit | avoir | écrir | écrire
    look_for: cherche cherches cherche cherchons cherchent | cherché | avoir | chercher | chercher
    find: trouve trouves trouve trouvons trouvent | trouvé | avoir | trouver | trouver
    lose: perds perds perd perdons perdent | perdu | avoir | perdr | perdre
    see: vois vois voit voyons voient | vu | avoir | verr | voir
    wash: lave laves lave lavons lavent | lavé | avoir | laver | laver
    carry: porte portes porte portons portent | porté | avoir | porter | porter
    repair: répare répares répare réparons réparent | réparé | avoir | réparer | réparer
    draw: dessine dessines dessine dessinons dessinent | dessiné | avoir | dessiner | dessiner
    open: ouvre ouvres ouvre ouvrons ouvrent | ouvert | avoir | ouvrir | ouvrir
    close: ferme fermes ferme fermons ferment | fermé | avoir | fermer | fermer
    visit: rends rends rend rendons rendent | rendu | avoir | rendr | rendre | visite
    visit_place: visite visites visite visitons visitent | visité | avoir | visiter | visiter
    clean: nettoie nettoies nettoie nettoyons nettoient | nettoyé | avoir | nettoier | nettoyer
    invite: invite invites invite invitons invitent | invité | avoir | inviter | inviter
    call: appelle appelles appelle appelons appellent | appelé | avoir | appeller | appeler
    help: aide aides aide aidons aident | aidé | avoir | aider | aider
    greet: salue salues salue saluons saluent | salué | avoir | saluer | saluer
    watch: observe observes observe observons observent | observé | avoir | observer | observer
    chase: poursuis poursuis poursuit poursuivons poursuivent | poursuivi | avoir | poursuivr | poursuivre
    feed_on: mange manges mange mangeons mangent | mangé | avoir | manger | manger
    give: donne donnes donne donnons donnent | donné | avoir | donner | donner
    send: envoie envoies envoie envoyons envoient | envoyé | avoir | enverr | envoyer
    bring: apporte apportes apporte apportons apportent | apporté | avoir | apporter | apporter
    sell_to: vends vends vend vendons vendent | vendu | avoir | vendr | vendre
    go: vais vas va allons vont | allé | être | ir | aller
    walk: vais vas va allons vont | allé | être | ir | aller | à pied
    drive: vais vas va allons vont | allé | être | ir | aller | en voiture
    run: cours cours court courons courent | couru | avoir | courr | courir
    come_back: reviens reviens revient revenons reviennent | revenu | être | reviendr | revenir
    sleep: dors dors dort dormons dorment | dormi | avoir | dormir | dormir
    sing: chante chantes chante chantons chantent | chanté | avoir | chanter | chanter
    dance: danse danses danse dansons dansent | dansé | avoir | danser | danser
    work: travaille travailles travaille travaillons travaillent | travaillé | avoir | travailler | travailler
    play: joue joues joue jouons jouent | joué | avoir | jouer | jouer
    study: étudie étudies étudie étudions étudient | étudié | avoir | étudier | étudier
    cook_meals: cuisine cuisines cuisine cuisinons cuisinent | cuisiné | avoir | cuisiner | cuisiner
    wait: attends attends attend attendons attendent | attendu | avoir | attendr | attendre
    laugh: ris ris rit rions rient | ri | avoir | rir | rire
    cry: pleure pleures pleure pleurons pleurent | pleuré | avoir | pleurer | pleurer
    arrive: arrive arrives arrive arrivons arrivent | arrivé | être | arriver | arriver
    say: dis dis dit disons disent | dit | avoir | dir | dire
    think: pense penses pense pensons pensent | pensé | avoir | penser | penser
    know: sais sais sait savons savent | su | avoir | saur | savoir
    believe: crois crois croit croyons croient | cru | avoir | croir | croire
    be: suis es est sommes sont | été | avoir | ser | être
    have: ai as a avons ont
    want: veux veux veut voulons veulent
    can: peux peux peut pouvons peuvent
    must: dois dois doit devons doivent
""")
FUTURE = ("ai", "as", "a", "ons", "ont")
WAS = ("étais", "étais", "était", "étions", "étaient")

TIMES = words("""
    yesterday: hier
    last_week: la semaine dernière
    last_year: l'année dernière
    this_morning: ce matin
    last_night: hier soir
    two_days_ago: il y a deux jours
    now: maintenant
    at_the_moment: en ce moment
    every_day: tous les jours
    every_morning: chaque matin
    every_evening: tous les soirs
    every_monday: tous les lundis
    every_week: chaque semaine
    tomorrow: demain
    next_week: la semaine prochaine
    next_year: l'année prochaine
    tonight: ce soir
    day_after_tomorrow: après-demain
    today: aujourd'hui
""")

NUMBERS = ("", "", "deux", "trois", "quatre", "cinq", "six", "sept", "huit", "neuf")
PRONOUNS = {"i": "je", "you": "tu", "he": "il", "she": "elle", "we": "nous", "they": "ils"}
# Masculine, feminine, plural, masculine before a vowel, feminine before a vowel.
DETERMINERS = table("""
    the: le | la | les | le | la
    this: ce | cette | ces | cet | cette
    a: un | une |  | un | une
    my: mon | ma | mes | mon | mon
    your: ton | ta | tes | ton | ton
    our: notre | notre | nos | notre | notre
""")
