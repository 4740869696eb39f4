"""Spanish lexicon.

Nouns: gender | singular | plural. Adjectives: masculine | feminine | masculine plural | feminine plural | copula.
Verbs: present (yo, tú, él, nosotros, ellos) | gerund | stem of the future | infinitive.
"""

from st_xling.data.phrasebook.tables import table, words

NOUNS = table("""
    teacher: m | profesor | profesores
    doctor: m | médico | médicos
    farmer: m | granjero | granjeros
    cook: m | cocinero | cocineros
    nurse: f | enfermera | enfermeras
    driver: m | conductor | conductores
    painter: f | pintora | pintoras
    tourist: m | turista | turistas
    man: m | hombre | hombres
    woman: f | mujer | mujeres
    friend: m | amigo | amigos
    neighbour: f | vecina | vecinas
    student: m | alumno | alumnos
    child: m | niño | niños
    boy: m | chico | chicos
    girl: f | chica | chicas
    mother: f | madre | madres
    father: m | padre | padres
    grandmother: f | abuela | abuelas
    grandfather: m | abuelo | abuelos
    uncle: m | tío | tíos
    aunt: f | tía | tías
    dog: m | perro | perros
    cat: m | gato | gatos
    horse: m | caballo | caballos
    rabbit: m | conejo | conejos
    goat: f | cabra | cabras
    bird: m | pájaro | pájaros
    pig: m | cerdo | cerdos
    duck: m | pato | patos
    cow: f | vaca | vacas
    monkey: m | mono | monos
    elephant: m | elefante | elefantes
    bear: m | oso | osos
    book: m | libro | libros
    newspaper: m | periódico | periódicos
    letter: f | carta | cartas
    bag: m | bolso | bolsos
    umbrella: m | paraguas | paraguas
    hat: m | sombrero | sombreros
    shirt: f | camisa | camisas
    cup: f | taza | tazas
    table: f | mesa | mesas
    chair: f | silla | sillas
    bicycle: f | bicicleta | bicicletas
    car: m | coche | coches
    pencil: m | lápiz | lápices
    phone: m | teléfono | teléfonos
    key: f | llave | llaves
    painting: m | cuadro | cuadros
    camera: f | cámara | cámaras
    clock: m | reloj | relojes
    lamp: f | lámpara | lámparas
    flower: f | flor | flores
    box: f | caja | cajas
    window: f | ventana | ventanas
    door: f | puerta | puertas
    house: f | casa | casas
    apple: f | manzana | manzanas
    pear: f | pera | peras
    tomato: m | tomate | tomates
    banana: m | plátano | plátanos
    orange: f | naranja | naranjas
    carrot: f | zanahoria | zanahorias
    egg: m | huevo | huevos
    cake: m | pastel | pasteles
    sandwich: m | bocadillo | bocadillos
    coffee: m | café | cafés
    tea: m | té | tés
    juice: m | zumo | zumos
    school: f | escuela | escuelas
    library: f | biblioteca | bibliotecas
    museum: m | museo | museos
    theatre: m | teatro | teatros
    market: m | mercado | mercados
    factory: f | fábrica | fábricas
    station: f | estación | estaciones
    airport: m | aeropuerto | aeropuertos
    hospital: m | hospital | hospitales
    restaurant: m | restaurante | restaurantes
    hotel: m | hotel | hoteles
    park: m | parque | parques
    garden: m | jardín | jardines
    village: m | pueblo | pueblos
    beach: f | playa | playas
    kitchen: f | cocina | cocinas
""")

ADJECTIVES = table("""
    young: joven | joven | jóvenes | jóvenes | ser
    aged: viejo | vieja | viejos | viejas | ser
    kind: amable | amable | amables | amables | ser
    clever: inteligente | inteligente | inteligentes | inteligentes | ser
    famous: famoso | famosa | famosos | famosas | ser
    rich: rico | rica | ricos | ricas | ser
    lazy: perezoso | perezosa | perezosos | perezosas | ser
    strong: fuerte | fuerte | fuertes | fuertes | ser
    polite: educado | educada | educados | educadas | ser
    tired: cansado | cansada | cansados | cansadas | estar
    nervous: nervioso | nerviosa | nerviosos | nerviosas | estar
    happy: contento | contenta | contentos | contentas | estar
    sad: triste | triste | tristes | tristes | estar
    angry: enfadado | enfadada | enfadados | enfadadas | estar
    big: grande | grande | grandes | grandes | ser
    small: pequeño | pequeña | pequeños | pequeñas | ser
    white: blanco | blanca | blancos | blancas | ser
    black: negro | negra | negros | negras | ser
    brown: marrón | marrón | marrones | marrones | ser
    red: rojo | roja | rojos | rojas | ser
    blue: azul | azul | azules | azules | ser
    green: verde | verde | verdes | verdes | ser
    yellow: amarillo | amarilla | amarillos | amarillas | ser
    new: nuevo | nueva | nuevos | nuevas | ser
    old: viejo | vieja | viejos | viejas | ser
    thick: grueso | gruesa | gruesos | gruesas | ser
    expensive: caro | cara | caros | caras | ser
    cheap: barato | barata | baratos | baratas | ser
    beautiful: bonito | bonita | bonitos | bonitas | ser
    clean: limpio | limpia | limpios | limpias | estar
    dirty: sucio | sucia | sucios | sucias | estar
    heavy: pesado | pesada | pesados | pesadas | ser
    fresh: fresco | fresca | frescos | frescas | estar
    sweet: dulce | dulce | dulces | dulces | estar
    ripe: maduro | madura | maduros | maduras | estar
    delicious: delicioso | deliciosa | deliciosos | deliciosas | estar
    hot: caliente | caliente | calientes | calientes | estar
    cold: frío | fría | fríos | frías | estar
    modern: moderno | moderna | modernos | modernas | ser
    quiet: tranquilo | tranquila | tranquilos | tranquilas | ser
""")

VERBS = table("""
    buy: compro compras compra compramos compran | comprando | comprar | comprar
    sell: vendo vendes vende vendemos venden | vendiendo | vender | vender
    eat: como comes come comemos comen | comiendo | comer | comer
    drink: bebo bebes bebe bebemos beben | bebiendo | beber | beber
    read: leo lees lee leemos leen | leyendo | leer | leer
    write: escribo escribes escribe escribimos escriben | escribiendo | escribir | escribir
    look_for: busco buscas busca buscamos buscan | buscando | buscar | buscar
    find: encuentro encuentras encuentra encontramos encuentran | encontrando | encontrar | encontrar
    lose: pierdo pierdes pierde perdemos pierden | perdiendo | perder | perder
    see: veo ves ve vemos ven | viendo | ver | ver
    wash: lavo lavas lava lavamos lavan | lavando | lavar | lavar
    carry: llevo llevas lleva llevamos llevan | llevando | llevar | llevar
    repair: reparo reparas repara reparamos reparan | reparando | reparar | reparar
    draw: dibujo dibujas dibuja dibujamos dibujan | dibujando | dibujar | dibujar
    open: abro abres abre abrimos abren | abriendo | abrir | abrir
    close: cierro cierras cierra cerramos cierran | cerrando | cerrar | cerrar
    visit: visito visitas visita visitamos visitan | visitando | visitar | visitar
    visit_place: visito visitas visita visitamos visitan | visitando | visitar | visitar
    clean: limpio limpias limpia limpiamos limpian | limpiando | limpiar | limpiar
    invite: invito invitas invita invitamos invitan | invitando | invitar | invitar
    call: llamo llamas llama llamamos llaman | llamando | llamar | llamar
    help: ayudo ayudas ayuda ayudamos ayudan | ayudando | ayudar | ayudar
    greet: saludo saludas saluda saludamos saludan | saludando | saludar | saludar
    watch: observo observas observa observamos observan | observando | observar | observar
    chase: persigo persigues persigue perseguimos persiguen | persiguiendo | perseguir | perseguir
    feed_on: como comes come comemos comen | comiendo | comer | comer
    give: doy das da damos dan | dando | dar | dar
    send: envío envías envía enviamos envían | enviando | enviar | enviar
    bring: traigo traes trae traemos traen | trayendo | traer | traer
    sell_to: vendo vendes vende vendemos venden | vendiendo | vender | vender
    go: voy vas va vamos van | yendo | ir | ir
    walk: camino caminas camina caminamos caminan | caminando | caminar | caminar
    drive: conduzco conduces conduce conducimos conducen | conduciendo | conducir | conducir
    run: corro corres corre corremos corren | corriendo | correr | correr
    come_back: vuelvo vuelves vuelve volvemos vuelven | volviendo | volver | volver
    sleep: duermo duermes duerme dormimos duermen | durmiendo | dormir | dormir
    sing: canto cantas canta cantamos cantan | cantando | cantar | cantar
    dance: bailo bailas baila bailamos bailan | bailando | bailar | bailar
    work: trabajo trabajas trabaja trabajamos trabajan | trabajando | trabajar | trabajar
    play: juego juegas juega jugamos juegan | jugando | jugar | jugar
    study: estudio estudias estudia estudiamos estudian | estudiando | estudiar | estudiar
    cook_meals: cocino cocinas cocina cocinamos cocinan | cocinando | cocinar | cocinar
    wait: espero esperas espera esperamos esperan | esperando | esperar | esperar
    laugh: río ríes ríe reímos ríen | riendo | reir | reír
    cry: lloro lloras llora lloramos lloran | llorando | llorar | llorar
    arrive: llego llegas llega llegamos llegan | llegando | llegar | llegar
    say: digo dices dice decimos dicen | diciendo | dir | decir
    think: pienso piensas piensa pensamos piensan | pensando | pensar | pensar
    know: sé sabes sabe sabemos saben | sabiendo | sabr | saber
    believe: creo crees cree creemos creen | creyendo | creer | creer
    ser: soy eres es somos son | siendo | ser | ser
    estar: estoy estás está estamos están | estando | estar | estar
    want: quiero quieres quiere queremos quieren
    can: puedo puedes puede podemos pueden
    must: tengo tienes tiene tenemos tienen
""")

# The preterite; of ser and estar the imperfect.
PAST = words("""
    buy: compré compraste compró compramos compraron
    sell: vendí vendiste vendió vendimos vendieron
    eat: comí comiste comió comimos comieron
    drink: bebí bebiste bebió bebimos bebieron
    read: leí leíste leyó leímos leyeron
    write: escribí escribiste escribió escribimos escribieron
    look_for: busqué buscaste buscó buscamos buscaron
    find: encontré encontraste encontró encontramos encontraron
    lose: perdí perdiste perdió perdimos perdieron
    see: vi viste vio vimos vieron
    wash: lavé lavaste lavó lavamos lavaron
    carry: llevé llevaste llevó llevamos llevaron
    repair: reparé reparaste reparó reparamos repararon
    draw: dibujé dibujaste dibujó dibujamos dibujaron
    open: abrí abriste abrió abrimos abrieron
    close: cerré cerraste cerró cerramos cerraron
    visit: visité visitaste visitó visitamos visitaron
    visit_place: visité visitaste visitó visitamos visitaron
    clean: limpié limpiaste limpió limpiamos limpiaron
    invite: invité invitaste invitó invitamos invitaron
    call: llamé llamaste llamó llamamos llamaron
    help: ayudé ayudaste ayudó ayudamos ayudaron
    greet: saludé saludaste saludó saludamos saludaron
    watch: observé observaste observó observamos observaron
    chase: perseguí perseguiste persiguió perseguimos persiguieron
    feed_on: comí comiste comió comimos comieron
    give: di diste dio dimos dieron
    send: envié enviaste envió enviamos enviaron
    bring: traje trajiste trajo trajimos trajeron
    sell_to: vendí vendiste vendió vendimos vendieron
    go: fui fuiste fue fuimos fueron
    walk: caminé caminaste caminó caminamos caminaron
    drive: conduje condujiste condujo condujimos condujeron
    run: corrí corriste corrió corrimos corrieron
    come_back: volví volviste volvió volvimos volvieron
    sleep: dormí dormiste durmió dormimos durmieron
    sing: canté cantaste cantó cantamos cantaron
    dance: bailé bailaste bailó bailamos bailaron
    work: trabajé trabajaste trabajó trabajamos trabajaron
    play: jugué jugaste jugó jugamos jugaron
    study: estudié estudiaste estudió estudiamos estudiaron
    cook_meals: cociné cocinaste cocinó cocinamos cocinaron
    wait: esperé esperaste esperó esperamos esperaron
    laugh: reí reíste rio reímos rieron
    cry: lloré lloraste lloró lloramos lloraron
    arrive: llegué llegaste llegó llegamos llegaron
    say: dije dijiste dijo dijimos dijeron
    think: pensé pensaste pensó pensamos pensaron
    know: supe supiste supo supimos supieron
    believe: creí creíste creyó creímos creyeron
    ser: era eras era éramos eran
    estar: estaba estabas estaba estábamos estaban""")
FUTURE = ("é", "ás", "á", "emos", "án")
# Verbs whose goal is "hasta" rather than "a".
UP_TO = frozenset(("walk", "drive", "run"))

TIMES = words("""
    yesterday: ayer
    last_week: la semana pasada
    last_year: el año pasado
    this_morning: esta mañana
    last_night: anoche
    two_days_ago: hace dos días
    now: ahora
    at_the_moment: en este momento
    every_day: todos los días
    every_morning: cada mañana
    every_evening: todas las tardes
    every_monday: todos los lunes
    every_week: cada semana
    tomorrow: mañana
    next_week: la semana que viene
    next_year: el año que viene
    tonight: esta noche
    day_after_tomorrow: pasado mañana
    today: hoy
""")

NUMBERS = ("", "", "dos", "tres", "cuatro", "cinco", "seis", "siete", "ocho", "nueve")
# The verb says the other persons; "he" and "she" need saying.
PRONOUNS = {"i": "", "you": "", "he": "él", "she": "ella", "we": "", "they": "ellos"}
# Masculine, feminine, masculine plural, feminine plural.
DETERMINERS = table("""
    the: el | la | los | las
    this: este | esta | estos | estas
    a: un | una |  |
    my: mi | mi | mis | mis
    your: tu | tu | tus | tus
    our: nuestro | nuestra | nuestros | nuestras
""")
